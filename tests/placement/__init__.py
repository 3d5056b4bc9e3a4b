"""Tests of placement: solvers, bounds, and the checker that shares no code with them."""
