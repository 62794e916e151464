"""Packs data folders of earlier versions into archives without machine-specific paths, and unpacks them anywhere.

A data folder contains absolute paths (checkpoint storage, run folders, the Python of tasks) and the name of its
machine. ``pack`` replaces them by marks. ``unpack`` replaces the marks by the values of this machine, so that the
folder looks as if it had been created here.
"""

import io
import re
import socket
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import zstandard

Change = Callable[[str], str]
KEPT = Path(__file__).resolve().parents[1] / "e2e" / "data_folders"
SOURCE = Path(__file__).resolve().parents[2]
DATABASE = "master.sqlite"
MAX_ARCHIVE_BYTES = 1_000_000
LEFT_OUT = re.compile(
    r"(^|/)(up\.lock|master\.lock|agent\.lock|__pycache__|.*-wal|.*-shm)$|^agent/harness(/|-|$)|^logs(/|$)"
)
"""Locks, caches that are rebuilt, and the programs' own logs."""


def marks(folder: Path) -> dict[str, str]:
    """Returns the value of each mark for a data folder at ``folder``. Longer values are replaced first."""
    return {"@DATA@": str(folder), "@VENV@": sys.prefix, "@SOURCE@": str(SOURCE), "@HOST@": socket.gethostname()}


def neutral(text: str, meanings: dict[str, str]) -> str:
    """Returns the text with marks in place of this machine's paths and name."""
    for mark, value in meanings.items():
        if mark == "@HOST@":
            text = re.sub(rf"(?<![\w./-]){re.escape(value)}(?![\w./-])", mark, text)
        else:
            text = text.replace(value, mark)
    return text


def local(text: str, meanings: dict[str, str]) -> str:
    for mark, value in meanings.items():
        text = text.replace(mark, value)
    return text


def pack(folder: Path, archive: Path) -> None:
    """Writes the data folder of a stopped cluster into ``archive``."""
    meanings = marks(folder)
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if any(LEFT_OUT.search(str(part)) for part in (name, *map(str, Path(name).parents))):
                continue
            if path.is_symlink():  # first: its target is outside this folder
                _add_link(tar, path, name, meanings)
            elif path.is_dir() or path.is_fifo():
                tar.add(path, name, recursive=False, filter=_anonymous)
            elif name == DATABASE:
                copy = Path(scratch) / DATABASE
                _copy_database(path, copy)
                _rewrite(copy, lambda text: neutral(text, meanings))
                tar.add(copy, name, filter=_anonymous)
            elif path.is_file():
                _add_bytes(tar, path, name, meanings)
    compressed = zstandard.ZstdCompressor(level=19).compress(buffer.getvalue())
    assert len(compressed) < MAX_ARCHIVE_BYTES, f"{len(compressed)} bytes are too many to be kept"
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(compressed)


def unpack(name: str, folder: Path) -> None:
    """Unpacks the archived data folder ``name`` into ``folder``, with the paths of this machine."""
    meanings = marks(folder)
    plain = zstandard.ZstdDecompressor().decompress((KEPT / f"{name}.tar.zst").read_bytes(), max_output_size=64 << 20)
    folder.mkdir(mode=0o700, parents=True)
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        tar.extractall(folder, filter="tar")
    for path in list(folder.rglob("*")):
        if path.is_symlink():
            _relink(path, local(str(path.readlink()), meanings))
        elif path.name == DATABASE:
            _rewrite(path, lambda text: local(text, meanings))
        elif path.is_file():
            content = path.read_bytes()
            path.write_bytes(local(content.decode("latin-1"), meanings).encode("latin-1"))


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _add_link(tar: tarfile.TarFile, path: Path, name: str, meanings: dict[str, str]) -> None:
    info = _anonymous(tar.gettarinfo(path, name))
    info.linkname = neutral(info.linkname, meanings)
    tar.addfile(info)


def _relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def _add_bytes(tar: tarfile.TarFile, path: Path, name: str, meanings: dict[str, str]) -> None:
    # Latin-1 preserves every byte of a binary file.
    text = path.read_bytes().decode("latin-1")
    if path.suffix == ".seg":  # read by offset, so its length must not change
        meanings = {"x" * len(value): value for value in meanings.values() if value.startswith("/")}
    content = neutral(text, meanings).encode("latin-1")
    info = _anonymous(tar.gettarinfo(path, name))
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def _copy_database(source: Path, target: Path) -> None:
    """Copies a database into one file without its write-ahead log."""
    origin, copy = sqlite3.connect(source), sqlite3.connect(target)
    origin.backup(copy)
    copy.execute("PRAGMA journal_mode=DELETE")
    origin.close()
    copy.close()


def _rewrite(database: Path, change: Change) -> None:
    """Applies ``change`` to every text of every table."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.create_function("changed", 1, change, deterministic=True)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for column in [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall()]:
            connection.execute(
                f'UPDATE "{table}" SET "{column}" = changed("{column}") '
                f'WHERE typeof("{column}") = \'text\' AND "{column}" <> changed("{column}")'
            )
    connection.execute("VACUUM")
    connection.close()
