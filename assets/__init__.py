"""Dagster assets over the stages of the compiler; nothing below this package imports Dagster."""
