"""A user's folder → one archive known by its hash, and back, guarded on both ways."""

from determined.context.archive import LIMIT, Packed
from determined.context.archive_reader import Entry, entries, read
from determined.context.files import from_files
from determined.context.packing import pack
from determined.context.unpacking import check_archive, to_tgz, unpack
from determined.errors import ContextError

__all__ = [
    "LIMIT",
    "ContextError",
    "Entry",
    "Packed",
    "check_archive",
    "entries",
    "from_files",
    "pack",
    "read",
    "to_tgz",
    "unpack",
]
