"""Stages of a build through the store: equal results however they come about, and what re-keys them."""
