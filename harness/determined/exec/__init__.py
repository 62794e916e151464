"""What runs inside a container before the user's code."""
