"""RLHF experiments: several worker types in one trial. ``task`` has what runs in it, and what projects import."""
