"""Tilewright's compiler: transformer models to application packages for the Graphcore IPU21.

Packages here are imported by their full names. No ``__init__`` re-exports anything: a stage's code
fingerprint follows imports, so a convenience import would tie stages to code that they do not use.
"""
