"""The agent: one a machine, holds slots and starts containers."""
