"""The agent: one per machine; it has slots and starts containers."""
