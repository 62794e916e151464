"""A folder that was packed before and has not changed is known by its hash, without a look into its files."""

import os
from pathlib import Path

import pytest

from determined import user_cache
from determined.context import KnownFolders, known_folders, pack, packing
from determined.errors import ContextError
from determined.user_cache import UserCache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "ctx"
    (root / "pkg").mkdir(parents=True)
    (root / "train.py").write_text("first")
    (root / "pkg" / "a.py").write_text("a")
    return root


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownFolders:
    """Trusts files of a moment ago, so that no test has to wait."""
    monkeypatch.setattr(known_folders, "UNTRUSTED_SECONDS", 0.0)
    return KnownFolders.of_user({"XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_an_unchanged_folder_is_not_read_again(
    folder: Path, known: KnownFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pack(folder, known=known)
    (folder / "__pycache__").mkdir()  # what is left out does not count
    with monkeypatch.context() as patched:
        patched.setattr(packing, "_read", lambda *_: pytest.fail("a file was read"))
        again = pack(folder, known=known)
        assert (again.hash, again.size, again.skipped) == (first.hash, first.size, [])
    assert again.data == first.data


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "new.py").write_text(""),
        lambda folder: (folder / "train.py").unlink(),
        lambda folder: (folder / "train.py").rename(folder / "other.py"),
        lambda folder: (folder / "train.py").chmod(0o755),
        lambda folder: (folder / "pkg" / "a.py").write_text("b"),
        lambda folder: (folder / ".detignore").write_text("pkg/"),
    ],
    ids=["added", "removed", "renamed", "mode", "content", "left out"],
)
def test_any_change_makes_it_unknown(folder: Path, known: KnownFolders, change) -> None:
    first = pack(folder, known=known)
    change(folder)
    again = pack(folder, known=known)
    assert again.hash == pack(folder).hash != first.hash


def test_a_change_that_restores_size_and_time_of_modification_is_seen(folder: Path, known: KnownFolders) -> None:
    file = folder / "train.py"
    before = file.stat()
    first = pack(folder, known=known)
    file.write_text("FIRST")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert pack(folder, known=known).hash != first.hash


def test_other_options_make_another_context(folder: Path, known: KnownFolders, tmp_path: Path) -> None:
    shared = tmp_path / "shared.py"
    shared.write_text("s")
    hashes = {
        pack(folder, known=known).hash,
        pack(folder, [shared], known=known).hash,
        pack(folder, exclude=["pkg/"], known=known).hash,
    }
    assert len(hashes) == 3


def test_files_that_changed_just_now_are_not_trusted(folder: Path, tmp_path: Path) -> None:
    known = KnownFolders(UserCache(tmp_path / "cache"))
    pack(folder, known=known)
    assert not known.cache.folder.exists()


def test_a_change_between_the_look_and_the_sending_is_an_error(folder: Path, known: KnownFolders) -> None:
    pack(folder, known=known)
    packed = pack(folder, known=known)
    (folder / "train.py").write_text("other")
    with pytest.raises(ContextError, match=r"changed while it was sent; submit it again"):
        _ = packed.data


def test_a_wrong_hash_is_forgotten_so_that_the_next_submission_is_right(folder: Path, known: KnownFolders) -> None:
    right = pack(folder, known=known)
    (entry,) = known.cache.folder.iterdir()
    entry.write_text("0" * 64)
    packed = pack(folder, known=known)
    assert packed.hash == "0" * 64
    with pytest.raises(ContextError, match="submit it again"):
        _ = packed.data
    again = pack(folder, known=known)
    assert (again.hash, again.data) == (right.hash, right.data)


def test_a_folder_with_an_unreadable_file_stays_unknown(
    folder: Path, known: KnownFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda path: refuse(path) if path.name == "a.py" else b"")
        assert pack(folder, known=known).skipped == ["pkg/a.py: Permission denied"]
    assert not known.cache.folder.exists()


def test_a_cache_that_cannot_be_written_or_is_damaged_does_no_harm(folder: Path, known: KnownFolders) -> None:
    known.cache.folder.parent.mkdir(parents=True)
    known.cache.folder.write_text("a file where the folder should be")
    assert pack(folder, known=known).hash == pack(folder).hash
    known.cache.folder.unlink()
    pack(folder, known=known)
    (entry,) = known.cache.folder.iterdir()
    entry.write_text("damaged")
    assert pack(folder, known=known).hash == pack(folder).hash


def test_only_the_newest_are_kept(folder: Path, known: KnownFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_cache, "MAX_ENTRIES", 2)
    for number in range(4):
        (folder / f"{number}.py").write_text("")
        pack(folder, known=known)
    assert len(list(known.cache.folder.iterdir())) == 2
