"""The tile program: tables of buffers, views, calls, copies and transfers under an order of steps."""
