"""The agent: runs once per machine, has slots and starts containers."""
