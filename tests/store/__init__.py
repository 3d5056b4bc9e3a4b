"""The content-addressed store: every failure class that such caches are known for has a test here."""
