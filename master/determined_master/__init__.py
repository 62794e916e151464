"""determined_master."""
