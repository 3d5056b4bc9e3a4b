"""The pages of Dagster over our assets, in a browser."""
