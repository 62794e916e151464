"""Entry points of the launch layers under Determined's module names: ``python3 -m determined.launch.<layer>``."""
