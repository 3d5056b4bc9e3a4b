"""Element-wise work."""
