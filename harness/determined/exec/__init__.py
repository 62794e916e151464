"""Programs that run inside a container before the user's code."""
