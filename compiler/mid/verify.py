"""What a well-formed whole-device program is. Being written."""
