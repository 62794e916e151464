"""The SSH server of an agent: one for each stream that carries SSH."""
