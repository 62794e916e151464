"""Streams into the tasks of this agent: programs that run beside them, and connections to their ports."""
