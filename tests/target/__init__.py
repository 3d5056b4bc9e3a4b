"""Facts of the IPU21 and the C600 against literal examples, brute force and their own properties."""
