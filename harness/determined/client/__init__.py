"""The master's calls: ``session.Session`` and one module a resource, one function a call."""
