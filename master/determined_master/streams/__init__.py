"""Streams into tasks: which container a stream goes to, and how its two ends find each other."""
