"""Exchange phases: from bytes that must move to timed rows of instructions, checked by decoding them."""
