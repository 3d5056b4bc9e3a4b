"""Tests of the semantic graph."""
