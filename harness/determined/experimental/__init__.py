"""Reserved for the Python SDK, which is not included yet."""
