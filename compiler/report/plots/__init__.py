"""Plots of reports; the only package that knows the plotting library."""
