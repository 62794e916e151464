"""``det rlhf``: experiments of several worker types."""
