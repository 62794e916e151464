"""``det runner``."""
