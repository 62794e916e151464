"""``det batch``."""
