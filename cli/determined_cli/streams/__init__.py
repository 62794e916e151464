"""Streams into tasks: programs beside them, and connections to their ports."""
