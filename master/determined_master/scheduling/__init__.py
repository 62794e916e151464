"""Scheduling: pure functions from a frozen view of a pool to a plan."""
