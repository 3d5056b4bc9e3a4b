"""Assembler, disassembler, instruction builder, object files and linker for IPU21 machine code."""
