"""Measurements of what has a time or memory budget. They report figures and never fail."""
