"""The content-addressed store: objects, records, keys, explanations."""
