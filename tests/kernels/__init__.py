"""Tests of the kernel families."""
