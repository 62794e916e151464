"""The master: the only one that speaks SQL."""
