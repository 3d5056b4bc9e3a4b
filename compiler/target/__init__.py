"""Facts of the IPU21 and the C600 card. Imports nothing of ours but ``compiler.errors``."""
