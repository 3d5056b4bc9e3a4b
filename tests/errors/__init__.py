"""The exact text of every message that a user can read."""
