"""Assets over the stages: what Dagster materializes, shows and refuses."""
