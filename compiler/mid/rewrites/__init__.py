"""Rewrites of whole-device programs: each takes a well-formed program and gives one."""
