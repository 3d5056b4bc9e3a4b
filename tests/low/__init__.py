"""Tests of the low program: builder, verifier, executor, projection, text and codec."""
