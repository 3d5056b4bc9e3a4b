"""Formats, element orders, tilings, owners, regions, coordinate mappings and byte traversals. Pure."""
