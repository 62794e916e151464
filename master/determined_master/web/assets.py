"""Files of the built page, listed once, so that no request path reaches the file system."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import determined_master

INDEX = "index.html"
ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""In the order of preference, with the end of the name that the compressed file has beside the plain one."""
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
    """Its name changes with its content."""


@dataclass(frozen=True)
class BuiltPage:
    index: str
    build: str
    """What tells this build from every other."""
    assets: Mapping[str, Asset]
    """By the path that a browser asks for."""


def page_folder() -> Path:
    """Inside the wheel ``_webui`` lies in this package; in the checkout it is built beside its roots."""
    package = Path(determined_master.__file__).parent
    inside = package / "_webui"
    return inside if inside.is_dir() else package.parents[1] / "webui" / "dist"


class PageFiles:
    """The page as it was built last; a new build is seen without a new start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = 0
        self._page: BuiltPage | None = None

    @property
    def page(self) -> BuiltPage | None:
        """None where none is built."""
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
    """Of a file whose name changes with its content. Kept: a first look needs several at once, and a thread for each
    read takes longer than all the rest. What browsers ask for, packed, is half a megabyte altogether."""
    return path.read_bytes()


def chosen(accept: str, there: Collection[str]) -> str | None:
    """The encoding to answer in; None for the plain file.

    >>> chosen("gzip, deflate, br", ["br", "gzip"]), chosen("br;q=0, gzip;q=0.5", ["br", "gzip"]), chosen("", ["br"])
    ('br', 'gzip', None)
    """
    taken = set()
    for part in accept.lower().split(","):
        name, _, quality = part.partition(";")
        if quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            taken.add(name.strip())
    return next((name for name in ENCODINGS if name in there and name in taken), None)
