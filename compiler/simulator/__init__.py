"""The tile machine: executes tile programs instruction by instruction, with hardware's timing and faults."""
