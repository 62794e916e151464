"""Requests to the master: ``session.Session``, and one module per resource with one function per request."""
