"""Whole-device programs: verifier, local calls, text, codec and interpreter."""
