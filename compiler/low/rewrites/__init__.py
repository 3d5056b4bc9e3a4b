"""Named rewrites of low programs: each takes a program and gives a program with the same results."""
