"""Unpacking of untrusted contexts: nothing is written outside the target, and sizes are bounded."""

import base64
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from determined.context import from_files, pack, to_tgz, unpack
from determined.errors import ContextError


@pytest.fixture(autouse=True, params=["filtered by Python too", "as in Python 3.11.2"])
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs each test with and without ``tarfile.data_filter``. Python of Debian 12 has none; our own checks must
    suffice."""
    if request.param == "as in Python 3.11.2":
        monkeypatch.delattr(tarfile, "data_filter")
        monkeypatch.delattr(tarfile, "FilterError")


def archive(*members: tarfile.TarInfo, content: bytes = b"evil") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            if member.isreg():
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return zstandard.ZstdCompressor().compress(buffer.getvalue())


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "members",
    [
        [member("../x")],
        [member("/tmp/x")],
        [member("a/../../x")],
        [member("x", tarfile.SYMTYPE, "../outside")],
        [member("x", tarfile.SYMTYPE, "/etc")],
        [member("d", tarfile.DIRTYPE), member("d/x", tarfile.SYMTYPE, "../../outside")],
        [
            member("a", tarfile.SYMTYPE, "b/.."),
            member("b", tarfile.SYMTYPE, "."),
            member("c", tarfile.SYMTYPE, "b/../.."),
        ],
        [member("x", tarfile.LNKTYPE, "/etc/passwd")],
        [member("x", tarfile.CHRTYPE)],
        [member("x", tarfile.FIFOTYPE)],
        [member("f"), member("f/x")],
        [member("l", tarfile.SYMTYPE, "."), member("d", tarfile.DIRTYPE), member("l", tarfile.SYMTYPE, "d/../..")],
    ],
)
def test_an_archive_that_leaves_its_folder_is_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    target = tmp_path / "in" / "target"
    with pytest.raises(ContextError):
        unpack(archive(*members), target)
    outside = {path for path in tmp_path.rglob("*") if not path.is_relative_to(target) and path != tmp_path / "in"}
    assert outside == set()


def test_unpacking_does_not_write_through_existing_links(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "outside").mkdir()
    target.mkdir()
    (target / "d").symlink_to(tmp_path / "outside")
    with pytest.raises(ContextError):
        unpack(archive(member("d/x")), target)
    (target / "f").symlink_to(tmp_path / "outside" / "y")
    with pytest.raises(ContextError):
        unpack(archive(member("f")), target)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_decompression_bomb_is_refused_by_unpack_and_to_tgz(tmp_path: Path) -> None:
    bomb = archive(member("x"), content=b"\0" * 5_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(ContextError, match="larger than the limit"):
        unpack(bomb, tmp_path, limit=1_000_000)
    with pytest.raises(ContextError, match="larger than the limit"):
        to_tgz(bomb, limit=1_000_000)


@pytest.mark.parametrize("data", [b"", b"rubbish", zstandard.ZstdCompressor().compress(b"rubbish" * 100)])
def test_unpacking_bytes_that_are_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ContextError):
        unpack(data, tmp_path / "t")


def test_unpacking_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    data = archive(member("x"), content=bytes(range(256)) * 400)
    for cut in (10, len(data) // 2, len(data) - 5):
        with pytest.raises(ContextError):
            unpack(data[:cut], tmp_path / f"t{cut}")


def v1(path: str, content: bytes = b"x", **other: Any) -> dict[str, Any]:
    """Returns a file as the API of Determined sends it."""
    file = {
        "path": path,
        "type": 48,
        "content": base64.b64encode(content).decode(),
        "mode": 0o100644,
        "uid": 0,
        "gid": 0,
    }
    return {**file, "mtime": "12", **other}


def test_a_file_list_of_the_api_gives_the_same_context_as_the_folder(tmp_path: Path) -> None:
    packed = from_files([v1("a/b.py"), v1("a", b"", type=53, mode=0o40755), v1("c.py", b"cc")])
    target = tmp_path / "t"
    unpack(packed.data, target)
    assert (target / "a" / "b.py").read_bytes() == b"x"
    assert (target / "c.py").stat().st_mtime == 12
    assert packed.size == 3
    assert pack(target).hash == packed.hash


@pytest.mark.parametrize(
    "files",
    [
        [v1("../x")],
        [v1("/x")],
        [v1("a\0b")],
        [v1("x", type=50)],
        [{**v1("x"), "content": "not base64!"}],
        [v1("x"), v1("./x")],
        [v1("x"), v1("x/y")],
        [v1("x", mtime="soon")],
        [v1("\udcff")],
        [{"content": ""}],
        ["x"],
    ],
)
def test_a_file_list_with_an_unsafe_or_invalid_entry_is_refused(files: list[Any]) -> None:
    with pytest.raises(ContextError):
        from_files(files)


def test_a_file_list_above_the_size_limit_is_refused() -> None:
    with pytest.raises(ContextError, match="more than"):
        from_files([v1("a", b"x" * 60), v1("b", b"x" * 60)], limit=100)


def test_an_empty_folder_in_a_file_list_is_left_out_with_a_note_about_links() -> None:
    packed = from_files(
        [
            v1("a", b"", type=53, mode=0o40755),
            v1("a/b", b"", type=53, mode=0o40755),
            v1("c", b"", type=53),
            v1("c/d.py"),
        ]
    )
    (note,) = packed.notes
    assert note.startswith("left out: a/b/: it arrived empty; for a link to a folder")


def test_a_time_that_no_file_can_have_is_refused(tmp_path):
    late = member("late.py")
    late.pax_headers = {"mtime": "1e300"}
    with pytest.raises(ContextError, match="cannot read the context"):
        unpack(archive(late), tmp_path)
