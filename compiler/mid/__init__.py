"""The whole-device program: copies, computations and repeats of distributed values, every one executable."""
