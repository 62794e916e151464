"""Packs a user's folder into one archive that its hash identifies, and unpacks it safely."""

from determined.context.archive import LIMIT, ContextArchive
from determined.context.archive_reader import ArchiveEntry, ArchiveTooLarge, entries, read, small_files
from determined.context.files import from_files
from determined.context.known_folders import KnownFolders
from determined.context.packing import pack
from determined.context.unpacking import check_archive, to_tgz, unpack
from determined.errors import ContextError

__all__ = [
    "LIMIT",
    "ArchiveEntry",
    "ArchiveTooLarge",
    "ContextArchive",
    "ContextError",
    "KnownFolders",
    "check_archive",
    "entries",
    "from_files",
    "pack",
    "read",
    "small_files",
    "to_tgz",
    "unpack",
]
