"""The launcher ``det`` for Hydra."""
