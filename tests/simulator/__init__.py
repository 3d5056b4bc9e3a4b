"""Tests of the tile machine."""
