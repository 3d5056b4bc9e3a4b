"""From whole-device programs to low ones: what each operation becomes on each tile."""
