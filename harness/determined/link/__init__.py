"""Messages between master and agent and the run-folder format, versioned; imported by those two alone."""
