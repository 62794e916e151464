"""Faces of the launch layers: ``python3 -m determined.launch.<layer>``."""
