"""determined_agent."""
