"""Small files that only save time, in the user's cache; each can be removed at any moment."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from determined_launch.atomic_file import write_atomic

MAX_ENTRIES = 200


@dataclass(frozen=True)
class UserCache:
    """Texts by key, a file for each. A cache that cannot be read or written is empty.

    >>> cache = UserCache.named("contexts", {"XDG_CACHE_HOME": "/dev/null"})
    >>> cache.put("a", "1")
    >>> cache.get("a") is None
    True
    """

    folder: Path

    @classmethod
    def named(cls, name: str, environ: Mapping[str, str] = os.environ) -> "UserCache":
        """Returns ``<cache>/detent/<name>``."""
        base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        return cls(Path(base, "detent", name))

    def get(self, key: str) -> str | None:
        """Returns the text, or None if there is none."""
        try:
            return (self.folder / key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def remove(self, key: str) -> None:
        """Removes a text, if there is one."""
        with suppress(OSError):
            (self.folder / key).unlink()

    def put(self, key: str, text: str) -> None:
        """Stores a text, and removes the oldest beyond MAX_ENTRIES."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / key, text, is_durable=False)
            files = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in files[MAX_ENTRIES:]:
                old.unlink(missing_ok=True)
