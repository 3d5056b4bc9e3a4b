"""The tile-specific program: tables of buffers, views, calls, copies and transfers under an order of steps."""
