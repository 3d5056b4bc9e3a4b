"""Kernel families: what each can do, what it demands and costs, what it computes, and its machine code."""
