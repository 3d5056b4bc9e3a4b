"""Tests of the planner: choices, constructors, fronts."""
