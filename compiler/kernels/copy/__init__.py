"""Copies and fills of bytes inside a tile."""
