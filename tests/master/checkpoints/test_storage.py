"""The checkpoint folders that the master reads and removes: folders named by a UUID below the admin's roots."""

import os
from pathlib import Path

import pytest
from tests.support.checkpoints import checkpoint_uuid, store_checkpoint

from determined.errors import NotFound
from determined.storage.bucket_access import Bucket
from determined_master.checkpoints import folders, storage
from determined_master.errors import OutOfReach
from determined_master.settings.read_settings import SettingsError, read_settings
from determined_master.settings.settings import Settings

UUID = checkpoint_uuid(1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Returns a checkpoint in a folder that no root contains."""
    return store_checkpoint(tmp_path / "outside", UUID)


def directory(path: object) -> dict[str, object]:
    return {"type": "directory", "container_path": str(path)}


def refuses(where: dict[str, object], root: Path, uuid: str = UUID, *, why: str) -> None:
    with pytest.raises(OutOfReach, match=why):
        next(storage.entries(where, uuid, [root]))
    with pytest.raises(OutOfReach, match=why):
        folders.refuse_out_of_reach(where, uuid, [root])
    assert why in (storage.remove(where, uuid, [root]) or "")


def test_a_folder_outside_the_roots_is_not_removed_and_the_setting_is_named(root: Path, outside: Path):
    refuses(directory(outside.parent), root, why="checkpoint_roots")
    assert storage.remove(directory(outside.parent), UUID, [root, outside.parent]) is None
    assert not outside.exists()


@pytest.mark.parametrize("below", ["../outside", "x/../../outside", "link"])
def test_a_path_that_leads_out_of_the_root_is_not_removed(root: Path, outside: Path, below: str):
    (root / "link").symlink_to(outside.parent)
    where = {"type": "shared_fs", "host_path": str(root), "storage_path": below}
    refuses(where, root, why="checkpoint_roots")
    assert outside.exists()


def test_a_link_under_the_checkpoints_name_is_not_removed(root: Path, outside: Path):
    (root / UUID).symlink_to(outside)
    refuses(directory(root), root, why="link")
    assert outside.exists()


def test_a_checkpoint_root_may_be_a_link(tmp_path: Path, root: Path):
    store_checkpoint(root, UUID)
    (tmp_path / "alias").symlink_to(root)
    assert storage.remove(directory(root), UUID, [tmp_path / "alias"]) is None
    assert os.listdir(root) == []


@pytest.mark.parametrize("name", ["", ".", "..", "blobs", "../outside", UUID + "/..", UUID.replace("-", "")])
def test_a_checkpoint_folder_is_named_by_a_uuid(root: Path, outside: Path, name: str):
    store_checkpoint(root, "blobs")
    refuses(directory(root), root, name, why="is not a checkpoint ID")
    assert os.listdir(root) == ["blobs"]
    assert outside.exists()


@pytest.mark.parametrize("marker", ["metadata.json", ".hashes.json"])
def test_only_a_folder_with_the_metadata_of_a_library_is_removed(root: Path, outside: Path, marker: str):
    folder = root / UUID
    folder.mkdir()
    (folder / "thesis.tex").write_text("x")
    assert "metadata.json" in (storage.remove(directory(root), UUID, [root]) or "")
    (folder / marker).symlink_to(outside / "metadata.json")
    assert "metadata.json" in (storage.remove(directory(root), UUID, [root]) or "")
    assert (folder / "thesis.tex").exists()
    (folder / marker).unlink()
    (folder / marker).write_text("{}")
    (folder / "away").symlink_to(outside)
    assert storage.remove(directory(root), UUID, [root]) is None
    assert os.listdir(root) == []
    assert outside.exists()


def test_removing_a_missing_checkpoint_is_not_an_error(root: Path):
    assert storage.remove(directory(root), UUID, [root]) is None
    assert storage.remove(directory(root / "never" / "made"), UUID, [root]) is None
    folders.refuse_out_of_reach(directory(root), UUID, [root])
    with pytest.raises(NotFound, match="are missing"):
        next(storage.entries(directory(root), UUID, [root]))


def test_a_removal_that_failed_is_finished_by_the_next(root: Path):
    folder = store_checkpoint(root, UUID)
    (root / f"{UUID}.deleted").write_text("in the way")
    with pytest.raises(OSError, match="Not a directory"):
        storage.remove(directory(root), UUID, [root])
    (root / f"{UUID}.deleted").unlink()
    folder.rename(root / f"{UUID}.deleted")
    assert storage.remove(directory(root), UUID, [root]) is None
    assert os.listdir(root) == []


def test_a_checkpoint_of_deeply_nested_folders_is_removed(root: Path):
    deep = store_checkpoint(root, UUID)
    number = os.open(deep, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=number)
        below = os.open("d", os.O_RDONLY, dir_fd=number)
        os.close(number)
        number = below
    os.close(number)
    assert storage.remove(directory(root), UUID, [root]) is None
    assert os.listdir(root) == []


@pytest.mark.parametrize("where", [{"type": "s3", "bucket": "b"}, {"type": "directory", "container_path": "/a\0b"}])
def test_storage_that_is_not_a_folder_is_refused(root: Path, where: dict[str, object]):
    assert storage.remove(where, UUID, [root])


def test_the_checkpoint_roots_are_the_masters_own_and_the_admins(tmp_path: Path):
    own = {"type": "shared_fs", "host_path": "/srv", "storage_path": "checkpoints"}
    settings = Settings(data=tmp_path, checkpoint_storage=own, checkpoint_roots=(Path("/mnt/a"),))
    assert storage.allowed_roots(settings) == (tmp_path / "checkpoints", Path("/srv/checkpoints"), Path("/mnt/a"))
    s3 = {"type": "s3", "bucket": "b", "prefix": "p"}
    other = Settings(
        data=tmp_path, checkpoint_storage=s3, checkpoint_buckets=("s3://lab?endpoint_url=http://minio:9000",)
    )
    named = Bucket("s3", "lab", "", "http://minio:9000")
    assert storage.allowed_roots(other) == (tmp_path / "checkpoints", Bucket("s3", "b", "p"), named)


def test_checkpoint_roots_come_from_flags_environment_and_file(tmp_path: Path):
    file = tmp_path / "services.yaml"
    file.write_text("checkpoint_roots: [/mnt/file]\n")
    argv = ["--config", str(file), "--data", str(tmp_path)]
    assert read_settings(argv, {}).checkpoint_roots == (Path("/mnt/file"),)
    environ = {"DET_MASTER_CHECKPOINT_ROOTS": "/mnt/a:/mnt/b"}
    assert read_settings(argv, environ).checkpoint_roots == (Path("/mnt/a"), Path("/mnt/b"))
    flags = ["--checkpoint-root", "/mnt/c", "--checkpoint-root", "/mnt/d"]
    assert read_settings(argv + flags, environ).checkpoint_roots == (Path("/mnt/c"), Path("/mnt/d"))
    for wrong in ("/", "mnt", "/mnt/.."):
        with pytest.raises(SettingsError, match="checkpoint_roots"):
            read_settings([*argv, "--checkpoint-root", wrong], {})
