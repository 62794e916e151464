"""The Python SDK: ``determined.experimental.client``."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401  # the parts of the package have several types
    """Imports the SDK at the first use of one of its names, so that importing the package alone stays fast."""
    client = importlib.import_module("determined.experimental.client")
    if name == "client":
        return client
    if name in client.__all__:
        return getattr(client, name)
    raise AttributeError(f"module 'determined.experimental' has no attribute {name!r}")
