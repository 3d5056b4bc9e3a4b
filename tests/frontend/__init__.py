"""Tests of what reads models of other systems."""
