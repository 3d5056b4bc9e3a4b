"""Application packages: codec, rules, files, hostile bytes."""
