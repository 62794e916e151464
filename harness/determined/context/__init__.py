"""A user's folder → one archive known by its hash, and back, guarded on both ways."""

from determined.context.archive import LIMIT, Packed
from determined.context.files import from_files
from determined.context.packing import pack
from determined.context.unpacking import to_tgz, unpack
from determined.errors import ContextError

__all__ = ["LIMIT", "ContextError", "Packed", "from_files", "pack", "to_tgz", "unpack"]
