"""Hashes of contexts that were packed before: an unchanged folder is neither read nor compressed again.

Like git's index, it takes files as unchanged that have the same name, mode, size, inode and times of modification and
of change. Files that changed shortly before they were packed are not trusted, because a later change may bear the same
time.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import zstandard

from determined.context.walk import WalkEntry
from determined.user_cache import UserCache

UNTRUSTED_SECONDS = 2.0
"""The coarsest clock of a file system in use."""
HASH_LENGTH = hashlib.sha256().digest_size * 2
_PACKER = f"2 {sys.version} {zstandard.ZSTD_VERSION}"
"""Another one may pack the same files differently."""


@dataclass(frozen=True)
class KnownFolders:
    """Hashes of contexts by the fingerprint of their entries."""

    cache: UserCache

    @classmethod
    def of_user(cls, environ: Mapping[str, str] = os.environ) -> "KnownFolders":
        """Returns those of the user, in ``<cache>/detent/contexts``."""
        return cls(UserCache.named("contexts", environ))

    def find(self, fingerprint: str) -> str | None:
        """Returns the hash of the context, or None if it is not known."""
        found = self.cache.get(fingerprint)
        return found if found is not None and len(found) == HASH_LENGTH else None

    def add(self, fingerprint: str, digest: str, entries: Iterable[WalkEntry]) -> None:
        """Stores the hash of a context, unless its files changed just now."""
        newest = max((each.changed_ns for each in entries), default=0)
        if newest <= (time.time() - UNTRUSTED_SECONDS) * 1e9:
            self.cache.put(fingerprint, digest)

    def forget(self, fingerprint: str) -> None:
        """Removes the hash of a context that turned out to be wrong."""
        self.cache.remove(fingerprint)


def fingerprint(named: Iterable[tuple[str, WalkEntry]], comment: str = "") -> str:
    """Returns a text for entries, each with the path at which it is packed, that differs if any of them changed.

    ``comment`` is that of the archive.
    """
    total = hashlib.sha256(_PACKER.encode())
    total.update(repr(comment).encode())
    for path, each in named:
        facts = (path, os.fspath(each.source), each.mode, each.mtime, each.size, each.is_folder, each.link, each.stamp)
        total.update(repr(facts).encode(errors="surrogateescape"))
    return total.hexdigest()
