"""Packing of a context: included and ignored files, the size limit, and equal bytes for equal folders."""

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest
import zstandard

from determined.context import pack, to_tgz, unpack
from determined.errors import ContextError


def names(data: bytes) -> list[str]:
    raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read()
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return tar.getnames()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "ctx"
    (root / "pkg" / "__pycache__").mkdir(parents=True)
    (root / "pkg" / "a.py").write_text("a")
    (root / "pkg" / "__pycache__" / "a.pyc").write_text("x")
    (root / "model_def.py").write_text("m")
    (root / ".detignore").write_text("*.log\n!*.pyc\n!__pycache__/\n")
    (root / "x.pyc").write_text("x")
    (root / "x.log").write_text("x")
    (root / "empty").mkdir()
    return root


def test_compiled_files_are_ignored_even_if_detignore_includes_them(folder: Path) -> None:
    assert names(pack(folder).data) == ["empty", "model_def.py", "pkg", "pkg/a.py"]


def test_equal_folders_give_equal_bytes(folder: Path, tmp_path: Path) -> None:
    first = pack(folder)
    copy = tmp_path / "copy"
    unpack(first.data, copy)
    (copy / ".detignore").write_bytes((folder / ".detignore").read_bytes())
    assert pack(copy).hash == first.hash
    # Python writes compiled files next to sources. This changes the folder's time and must not change the hash.
    (folder / "pkg" / "__pycache__" / "b.pyc").write_text("y")
    assert pack(folder).hash == first.hash
    assert to_tgz(first.data) == to_tgz(first.data)
    (folder / "pkg" / "a.py").write_text("b")
    assert pack(folder).hash != first.hash


def test_unpacking_a_packed_context_restores_modes_times_and_links(folder: Path, tmp_path: Path) -> None:
    (folder / "run.sh").write_text("#!/bin/sh")
    (folder / "run.sh").chmod(0o755)
    os.utime(folder / "run.sh", (1_000_000_000, 1_000_000_000))
    (folder / "pkg" / "link.py").symlink_to("../model_def.py")
    (folder / "absolute").symlink_to(folder / "pkg")
    target = tmp_path / "out"
    unpack(pack(folder).data, target)
    assert (target / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (target / "run.sh").stat().st_mtime == 1_000_000_000
    assert (target / "pkg" / "link.py").read_text() == "m"
    assert os.readlink(target / "absolute") == "pkg"


def test_entries_that_cannot_be_sent_are_listed_with_the_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "dangling").symlink_to("nothing")
    (folder / "dropped.log").touch()
    (folder / "to_dropped").symlink_to("dropped.log")
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)  # the path of a socket is limited to some hundred characters
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        packed = pack(folder)
    assert packed.skipped == [
        "dangling: a broken link",
        "pipe: neither a file nor a folder (pipe)",
        "sock: neither a file nor a folder (socket)",
        "to_dropped: a link to dropped.log, which is not sent",
    ]
    assert not {"pipe", "sock", "dangling", "to_dropped"} & set(names(packed.data))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_and_folders_are_listed_as_skipped(folder: Path) -> None:
    (folder / "model_def.py").chmod(0)
    (folder / "empty").chmod(0)
    try:
        assert pack(folder).skipped == ["empty/: Permission denied", "model_def.py: Permission denied"]
    finally:
        (folder / "empty").chmod(0o700)


def test_names_that_are_not_utf8_are_listed_as_skipped(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff.py")).touch()
    assert pack(folder).skipped == ["'\\udcff.py': the name is not UTF-8"]


def test_a_context_that_is_too_large_names_the_five_biggest_files_and_their_patterns(folder: Path) -> None:
    for index in range(7):
        (folder / f"big {index}[x].bin").write_bytes(b"x" * (100 + index))
    with pytest.raises(ContextError) as caught:
        pack(folder, limit=300)
    lines = caught.value.message.splitlines()
    assert lines[0] == "the context holds 723 bytes of files, more than the limit of 300; the biggest:"
    assert len(lines) == 6
    assert lines[1].endswith(f"exclude it with /big 6\\[x].bin in {folder / '.detignore'}")
    with (folder / ".detignore").open("a") as out:
        out.write("\n".join(line.split("exclude it with ")[1].split(" in ")[0] for line in lines[1:]))
    assert pack(folder, limit=300).size == 203


def test_included_files_and_folders_are_packed(folder: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "sub").mkdir(parents=True)
    (shared / "sub" / "s.py").touch()
    (shared / "s.log").touch()
    (shared / "s.tmp").touch()
    (shared / ".detignore").write_text("*.tmp")
    (tmp_path / "one.log").touch()
    packed_names = names(pack(folder, [shared, tmp_path / "one.log"]).data)
    assert packed_names[:5] == ["empty", "model_def.py", "one.log", "pkg", "pkg/a.py"]
    assert packed_names[5:] == ["shared", "shared/s.log", "shared/sub", "shared/sub/s.py"]
    with pytest.raises(ContextError, match="already has pkg"):
        pack(folder, [folder / "pkg"])
    with pytest.raises(ContextError, match="does not exist"):
        pack(folder, [tmp_path / "nothing"])


def test_a_context_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ContextError, match="is not a folder"):
        pack(tmp_path / "file")
    with pytest.raises(ContextError, match="does not exist"):
        pack(tmp_path / "nothing")


def test_an_unreadable_detignore_is_an_error(folder: Path) -> None:
    (folder / ".detignore").write_bytes(b"\xff\xfe")
    with pytest.raises(ContextError, match="cannot read"):
        pack(folder)


@pytest.mark.parametrize("ignored", ["", "*\n"])
def test_a_folder_without_files_to_send_is_refused(tmp_path, ignored):
    (tmp_path / "inner").mkdir()
    if ignored:
        (tmp_path / "inner" / "train.py").touch()
        (tmp_path / ".detignore").write_text(ignored)
    with pytest.raises(ContextError, match=r"has no files to send.*\.detignore"):
        pack(tmp_path)
