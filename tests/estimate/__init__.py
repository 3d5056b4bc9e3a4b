"""Tests of the estimates: they count what the tables say, and schedules come close to simulations."""
