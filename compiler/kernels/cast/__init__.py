"""Casts between F32, F16 and F143, and from one scale of F143 to another."""
