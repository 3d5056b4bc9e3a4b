"""Tests of exchange phases."""
