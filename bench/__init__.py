"""Benchmarks that report figures as ratios to a reference in the same run."""
