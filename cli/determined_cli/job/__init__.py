"""``det job``."""
