"""Estimates: queries over programs and prices of what is not yet built. They construct nothing."""
