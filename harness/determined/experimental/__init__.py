"""The Python SDK comes here."""
