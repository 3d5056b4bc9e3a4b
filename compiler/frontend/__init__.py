"""Models of other systems, as graphs."""
