"""Tensors from one element order to another."""
