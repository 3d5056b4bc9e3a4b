"""The semantic graph: what is computed, in shaped SSA; rules, text, digest and reference evaluation."""
