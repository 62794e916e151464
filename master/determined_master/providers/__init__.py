"""Providers: they start agents for pools whose queue needs them, and end idle ones."""
