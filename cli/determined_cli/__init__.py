"""determined_cli."""
