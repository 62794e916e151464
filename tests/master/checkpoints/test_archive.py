"""The archive of a checkpoint: its entries and its use of memory."""

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from determined_master.checkpoints.archive import CHUNK_BYTES, FolderEntry, tar_chunks, zip_chunks
from determined_master.checkpoints.folders import entries_below

Chunks = Callable[[Iterator[FolderEntry]], Iterator[bytes]]


def entries_of(folder: Path) -> Iterator[FolderEntry]:
    number = os.open(folder, os.O_RDONLY)
    try:
        yield from entries_below(number)
    finally:
        os.close(number)


def unpacked(chunks: Chunks, folder: Path) -> dict[str, bytes | None]:
    """Returns the contents by name, with None for a folder."""
    data = io.BytesIO(b"".join(chunks(entries_of(folder))))
    if chunks is zip_chunks:
        with zipfile.ZipFile(data) as archive:
            return {n.rstrip("/"): None if n.endswith("/") else archive.read(n) for n in archive.namelist()}
    contents: dict[str, bytes | None] = {}
    with tarfile.open(fileobj=data, mode="r:gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            contents[member.name] = file.read() if file else None
    return contents


@pytest.mark.parametrize("chunks", [tar_chunks, zip_chunks])
def test_an_archive_holds_files_and_folders_and_nothing_else(tmp_path: Path, chunks: Chunks):
    folder = tmp_path / "checkpoint"
    (folder / "code" / "empty").mkdir(parents=True)
    (folder / "code" / "ü.py").write_text("x")
    (folder / "weights").write_bytes(b"w" * 700)
    os.utime(folder / "weights", (0, 0))
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    (folder / "link").symlink_to(secret)
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
    assert unpacked(chunks, folder) == {
        "code": None,
        "code/empty": None,
        "code/ü.py": b"x",
        "weights": b"w" * 700,
    }


@pytest.mark.parametrize("chunks", [tar_chunks, zip_chunks])
def test_a_large_file_passes_in_bounded_chunks(tmp_path: Path, chunks: Chunks):
    content = os.urandom(8 * CHUNK_BYTES + 1)
    (tmp_path / "weights").write_bytes(content)
    sizes = [len(chunk) for chunk in chunks(entries_of(tmp_path))]
    assert max(sizes) < 2 * CHUNK_BYTES
    assert sum(sizes) >= len(content)
    assert unpacked(chunks, tmp_path) == {"weights": content}


@pytest.mark.parametrize("chunks", [tar_chunks, zip_chunks])
def test_an_archive_that_is_closed_early_leaves_no_descriptor_open(tmp_path: Path, chunks: Chunks):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "weights").write_bytes(os.urandom(4 * CHUNK_BYTES))
    before = len(os.listdir("/proc/self/fd"))
    started = chunks(entries_of(tmp_path))
    while not next(started):
        pass  # until the file is being read
    assert len(os.listdir("/proc/self/fd")) > before
    del started
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_archive_of_folders_nested_too_deeply_breaks_off(tmp_path: Path):
    deep = tmp_path
    for _ in range(70):
        deep = deep / "d"
    deep.mkdir(parents=True)
    with pytest.raises(OSError, match="nested too deeply"):
        list(tar_chunks(entries_of(tmp_path)))
