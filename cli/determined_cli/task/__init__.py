"""``det task``."""
