"""Checks of files of exchange examples: every stated fact is worked out again and compared."""
