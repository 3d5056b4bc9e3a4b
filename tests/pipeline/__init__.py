"""Tests of what people start from a shell."""
