"""Sums of partials."""
