"""Contexts that were packed before: an unchanged folder is recognised by its hash, and its files are not read."""

import os
from pathlib import Path

import pytest

from determined import user_cache
from determined.context import KnownFolders, known_folders, pack
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
    """Returns known folders that trust recently changed files, so that no test has to wait."""
    monkeypatch.setattr(known_folders, "UNTRUSTED_SECONDS", 0.0)
    return KnownFolders.of_user({"XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_an_unchanged_folder_is_not_read_again(
    folder: Path, known: KnownFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pack(folder, known=known)
    (folder / "__pycache__").mkdir()  # an ignored folder does not change the hash
    read_bytes = Path.read_bytes

    def read_others(path: Path) -> bytes:
        assert path.suffix != ".py", f"{path} was read"
        return read_bytes(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", read_others)
        second = pack(folder, known=known)
        assert (second.hash, second.size, second.skipped) == (first.hash, first.size, [])
    assert second.data == first.data


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
def test_any_change_of_a_known_folder_gives_a_new_hash(folder: Path, known: KnownFolders, change) -> None:
    first = pack(folder, known=known)
    change(folder)
    second = pack(folder, known=known)
    assert second.hash == pack(folder).hash != first.hash


def test_a_change_with_equal_size_and_modification_time_is_noticed(folder: Path, known: KnownFolders) -> None:
    file = folder / "train.py"
    before = file.stat()
    first = pack(folder, known=known)
    file.write_text("FIRST")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert pack(folder, known=known).hash != first.hash


def test_included_and_excluded_files_change_the_hash_of_a_known_folder(
    folder: Path, known: KnownFolders, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.py"
    shared.write_text("s")
    hashes = {
        pack(folder, known=known).hash,
        pack(folder, [shared], known=known).hash,
        pack(folder, exclude=["pkg/"], known=known).hash,
    }
    assert len(hashes) == 3


def test_a_folder_with_recently_changed_files_is_not_remembered(folder: Path, tmp_path: Path) -> None:
    known = KnownFolders(UserCache(tmp_path / "cache"))
    pack(folder, known=known)
    assert not known.cache.folder.exists()


def test_a_change_between_packing_and_sending_is_an_error(folder: Path, known: KnownFolders) -> None:
    pack(folder, known=known)
    packed = pack(folder, known=known)
    (folder / "train.py").write_text("other")
    with pytest.raises(ContextError, match=r"changed while it was sent; submit it again"):
        _ = packed.data


def test_a_wrong_remembered_hash_is_removed_when_it_is_noticed(folder: Path, known: KnownFolders) -> None:
    right = pack(folder, known=known)
    (entry,) = known.cache.folder.iterdir()
    entry.write_text("0" * 64)
    packed = pack(folder, known=known)
    assert packed.hash == "0" * 64
    with pytest.raises(ContextError, match="submit it again"):
        _ = packed.data
    second = pack(folder, known=known)
    assert (second.hash, second.data) == (right.hash, right.data)


def test_a_folder_with_an_unreadable_file_is_not_remembered(
    folder: Path, known: KnownFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda path: refuse(path) if path.name == "a.py" else b"")
        assert pack(folder, known=known).skipped == ["pkg/a.py: Permission denied"]
    assert not known.cache.folder.exists()


def test_packing_works_with_an_unwritable_or_damaged_cache(folder: Path, known: KnownFolders) -> None:
    known.cache.folder.parent.mkdir(parents=True)
    known.cache.folder.write_text("a file where the folder should be")
    assert pack(folder, known=known).hash == pack(folder).hash
    known.cache.folder.unlink()
    pack(folder, known=known)
    (entry,) = known.cache.folder.iterdir()
    entry.write_text("damaged")
    assert pack(folder, known=known).hash == pack(folder).hash


def test_the_cache_keeps_a_bounded_number_of_folders(
    folder: Path, known: KnownFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_cache, "MAX_ENTRIES", 2)
    for number in range(4):
        (folder / f"{number}.py").write_text("")
        pack(folder, known=known)
    assert len(list(known.cache.folder.iterdir())) == 2
