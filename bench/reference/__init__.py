"""References: what a figure is measured against, written for the purpose."""
