"""Products on the AMP unit."""
