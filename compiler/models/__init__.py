"""The representative models, and the hand-written program of four tiles."""
