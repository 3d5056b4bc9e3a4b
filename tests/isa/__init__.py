"""Instruction table, assembler, objects, linker and disassembler."""
