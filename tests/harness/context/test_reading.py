"""Reading of a stored context without unpacking it: the tree, and single files."""

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from determined.context import ArchiveTooLarge, ContextError, archive_reader, entries, pack, read, small_files


def stored(tmp_path: Path, *members: tuple[str, bytes | None, str | None]) -> Path:
    """Writes an archive of (name, content, link), whatever the names are. Returns its path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content, link in members:
            header = tarfile.TarInfo(name)
            if link is not None:
                header.type, header.linkname = tarfile.SYMTYPE, link
            elif content is None:
                header.type = tarfile.DIRTYPE
            header.size = len(content or b"")
            tar.addfile(header, io.BytesIO(content or b""))
    data = zstandard.ZstdCompressor().compress(buffer.getvalue())
    path = tmp_path / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    return path


def test_entries_are_in_order_and_include_the_folders_above_them(tmp_path: Path):
    path = stored(
        tmp_path, ("b/c/d.py", b"pass\n", None), ("a.bin", b"\0\1", None), ("l", None, "a.bin"), ("b.txt", b"", None)
    )
    listed = [(e.path, e.size, e.is_folder, e.is_text, e.link) for e in entries(path)]
    assert listed == [
        ("a.bin", 2, False, False, None),
        ("b", 0, True, False, None),
        ("b/c", 0, True, False, None),
        ("b/c/d.py", 5, False, True, None),
        ("b.txt", 0, False, True, None),
        ("l", 0, False, False, "a.bin"),
    ]


def test_read_returns_a_packed_file_up_to_a_limit_or_none(tmp_path: Path):
    folder = tmp_path / "f"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "run.py").write_text("x" * 5000)
    path = tmp_path / "kept"
    path.write_bytes(pack(folder).data)
    assert read(path, "deep/run.py") == (b"x" * 5000, 5000)
    assert read(path, "./deep//run.py", 10) == (b"x" * 10, 5000)
    assert read(path, "deep") is None
    assert read(path, "other") is None


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a/../../b", "a\0b"])
def test_reading_a_name_outside_of_the_context_is_refused(tmp_path: Path, name: str):
    with pytest.raises(ContextError, match="outside of its folder"):
        read(stored(tmp_path, ("a", b"", None)), name)


def test_reading_a_link_returns_none(tmp_path: Path):
    assert read(stored(tmp_path, ("l", None, "/etc/passwd")), "l") is None


@pytest.mark.parametrize("data", [b"", b"no archive", zstandard.compress(b"no tar" * 1000)])
def test_listing_a_file_that_is_no_archive_raises_a_context_error(tmp_path: Path, data: bytes):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ContextError):
        entries(tmp_path / "x")


def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive_reader, "MAX_UNPACKED", 10_000)
    path = stored(tmp_path, ("a", b"\0" * 1_000_000, None))
    with pytest.raises(ContextError, match="larger than the limit"):
        read(path, "b")


@pytest.mark.parametrize(
    ("head", "expected"),
    [(b"", True), ("ü".encode(), True), ("ü".encode()[:1], True), (b"\xff\xfe", False), (b"a\0", False)],
)
def test_is_text_recognizes_utf8_and_refuses_binary(head: bytes, expected: bool):
    assert archive_reader.is_text(head) is expected


def test_small_files_are_found_by_name_in_one_read_of_the_archive(tmp_path: Path) -> None:
    path = stored(
        tmp_path, ("a/r.txt", b"numpy", None), ("large", b"x" * 100, None), ("l", None, "a/r.txt"), ("d", None, None)
    )
    opened: list[Path] = []

    class CountedPath(type(path)):  # type: ignore[misc]  # the class of paths of this machine
        def open(self, *arguments: Any, **options: Any) -> Any:
            opened.append(self)
            return super().open(*arguments, **options)

    with small_files(CountedPath(path), 10) as content:
        assert [content(name) for name in ("a/r.txt", "large", "none", "l", "d")] == [
            b"numpy",
            b"x" * 11,
            None,
            None,
            None,
        ]
        with pytest.raises(ContextError):
            content("../r.txt")
    assert opened == [path]


def test_small_files_refuses_an_archive_above_the_byte_limit(tmp_path: Path) -> None:
    path = stored(tmp_path, ("r.txt", b"numpy", None), ("large", b"x" * 100, None))
    with small_files(path, 10, 105) as content:
        assert content("r.txt") == b"numpy"
    with pytest.raises(ArchiveTooLarge, match="more than 104 bytes"), small_files(path, 10, 104):
        pass
