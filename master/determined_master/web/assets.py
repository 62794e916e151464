"""Files of the built page, listed once, so that request paths never reach the file system."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import determined_master

INDEX = "index.html"
ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Encodings in the order of preference, with the suffix of the compressed file."""
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True)
class Asset:
    path: Path
    media_type: str
    compressed: Mapping[str, Path]
    is_immutable: bool
    """True if the file's name changes with its content."""


@dataclass(frozen=True)
class BuiltPage:
    index: str
    build: str
    """Hash that identifies the build."""
    assets: Mapping[str, Asset]
    """Files by the path that browsers request."""


def page_folder() -> Path:
    """Returns the built page: ``_webui`` of this package in a wheel, else the checkout's build."""
    package = Path(determined_master.__file__).parent
    inside = package / "_webui"
    return inside if inside.is_dir() else package.parents[1] / "webui" / "dist"


class PageFiles:
    """The page as it was built last; a new build is noticed without a restart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = 0
        self._page: BuiltPage | None = None

    @property
    def page(self) -> BuiltPage | None:
        """Returns None if no page is built."""
        try:
            stamp = (self._folder / INDEX).stat().st_mtime_ns
        except OSError:
            self._stamp, self._page = 0, None
            return None
        if stamp != self._stamp:
            self._stamp, self._page = stamp, load(self._folder)
        return self._page


def load(folder: Path) -> BuiltPage:
    index = (folder / INDEX).read_text(encoding="utf-8")
    files = {path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    ends = tuple(ENCODINGS.values())
    assets = {
        f"/{path.relative_to(folder).as_posix()}": _asset(path, folder, files)
        for path in files
        if not path.name.endswith(ends) and path != folder / INDEX
    }
    return BuiltPage(index, hashlib.sha256(index.encode()).hexdigest()[:12], assets)


def _asset(path: Path, folder: Path, files: Collection[Path]) -> Asset:
    beside = {name: path.with_name(path.name + end) for name, end in ENCODINGS.items()}
    return Asset(
        path=path,
        media_type=TYPES.get(path.suffix, "application/octet-stream"),
        compressed={name: packed for name, packed in beside.items() if packed in files},
        is_immutable=path.relative_to(folder).parts[0] == "assets",
    )


@lru_cache(64)
def held(path: Path) -> bytes:
    """Reads a file whose name changes with its content, and caches it: the first view needs several files, and a thread
    for each read takes longer than everything else. The compressed files have half a megabyte altogether."""
    return path.read_bytes()


def chosen(accept: str, there: Collection[str]) -> str | None:
    """Returns the encoding of the answer; None for the plain file.

    >>> chosen("gzip, deflate, br", ["br", "gzip"]), chosen("br;q=0, gzip;q=0.5", ["br", "gzip"]), chosen("", ["br"])
    ('br', 'gzip', None)
    """
    taken = set()
    for part in accept.lower().split(","):
        name, _, quality = part.partition(";")
        if quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            taken.add(name.strip())
    return next((name for name in ENCODINGS if name in there and name in taken), None)
