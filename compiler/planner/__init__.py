"""The planner: choices, one constructor for each family of operations, and the search among recipes."""
