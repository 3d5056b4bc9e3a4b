"""Coordinates, orders, tilings and traversals against slow interpreters and brute force."""
