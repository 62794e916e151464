"""``det hydra``."""
