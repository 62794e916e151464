"""Checkpoint storage: files of a checkpoint are stored completely or not at all."""

from determined.storage.base import Storage
from determined.storage.factory import from_config

__all__ = ["Storage", "from_config"]
