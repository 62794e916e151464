"""References that the figures are compared with, written for this purpose."""
