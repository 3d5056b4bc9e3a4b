"""Tests: independent oracles, properties, and the exact text of what users read."""
