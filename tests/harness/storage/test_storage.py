"""The checkpoint storages, with the same tests for each: whole checkpoints or none, and errors that name the place."""

import errno
import json
import os

import pytest

from determined.errors import StorageError
from determined.storage import from_config
from determined.storage.base import HASHES_FILE

U1, GOOD, BAD = (f"00000000-0000-4000-8000-{number:012x}" for number in (1, 2, 3))


@pytest.fixture(params=["shared_fs", "directory"])
def storage_and_root(request, tmp_path):
    """Returns a storage, its root, and the place that its errors name."""
    if request.param == "shared_fs":
        config = {"type": "shared_fs", "host_path": "/srv/store", "storage_path": "some/where"}
        return (
            from_config(config, {"DET_SHARED_FS": str(tmp_path)}),
            tmp_path / "some" / "where",
            "/srv/store/some/where",
        )
    return (
        from_config({"type": "directory", "container_path": str(tmp_path / "d")}, {}),
        tmp_path / "d",
        str(tmp_path / "d"),
    )


def write_nothing(folder):
    pass


def store(storage, uuid=U1, **files):
    with storage.store_path(uuid, write_nothing) as path:
        for name, text in files.items():
            (path / name).write_text(text)


def test_uploaded_files_are_listed_and_downloaded_unchanged(storage_and_root, tmp_path):
    storage, root, _ = storage_and_root
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "b").write_text("bb")
    (source / "a").write_text("a")
    storage.upload(source, U1, ["a", "sub/", "sub/b"], lambda folder: (folder / "metadata.json").write_text("{}"))
    assert storage.resources(U1) == {"a": 1, "sub/": 0, "sub/b": 2, "metadata.json": 2}
    assert set(json.loads((root / U1 / HASHES_FILE).read_text())) == {"a", "sub/b", "metadata.json"}
    storage.download(U1, tmp_path / "back", lambda name: name.startswith("sub"))
    assert (tmp_path / "back" / "sub" / "b").read_text() == "bb"
    assert not (tmp_path / "back" / "a").exists()
    assert storage.read(U1, "a") == b"a"
    with storage.restore_path(U1) as path:
        assert (path / "a").read_text() == "a"
    storage.delete(U1)
    storage.delete(U1)
    assert os.listdir(root) == []


def test_a_checkpoint_is_invisible_until_it_is_complete(storage_and_root):
    storage, root, _ = storage_and_root
    with storage.store_path(U1, write_nothing) as path:
        (path / "a").write_text("a")
        assert not (root / U1).exists()
        assert path.parent == root
    assert (root / U1 / "a").read_text() == "a"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.ESTALE])
def test_the_error_of_a_full_disk_names_the_place_and_keeps_the_last_good_checkpoint(storage_and_root, number):
    storage, root, place = storage_and_root
    store(storage, GOOD, a="1")

    def fill(path):
        (path / "half").write_text("x")
        raise OSError(number, os.strerror(number), str(path / "half"))

    with pytest.raises(StorageError) as failed, storage.store_path(BAD, fill):
        pass
    assert place in str(failed.value)
    assert "last good checkpoint is kept" in str(failed.value)
    assert os.listdir(root) == [GOOD]


def test_an_error_inside_store_path_is_raised_unchanged(storage_and_root):
    storage, root, _ = storage_and_root
    with pytest.raises(FileNotFoundError, match="mine"), storage.store_path(BAD, write_nothing):
        os.stat("/nowhere/mine")
    assert os.listdir(root) == []


def test_the_error_about_a_missing_checkpoint_names_the_place(storage_and_root):
    storage, _, place = storage_and_root
    with pytest.raises(StorageError, match=f"{BAD} is not in") as failed, storage.restore_path(BAD):
        pass
    assert place in str(failed.value)


@pytest.mark.parametrize("name", ["", ".", "model", "ABCDEF00-0000-4000-8000-000000000001", U1 + "\n", U1 + "/a"])
def test_a_checkpoint_name_that_is_no_uuid_is_refused(storage_and_root, name):
    """No name here leaves the test's own folder. Without the check, ``delete`` would remove the folder of that name."""
    storage, root, _ = storage_and_root
    store(storage, a="1")
    for act in (storage.delete, storage.resources, lambda uuid: store(storage, uuid)):
        with pytest.raises(StorageError, match="is not a checkpoint ID"):
            act(name)
    assert os.listdir(root) == [U1]
    assert os.listdir(root.parent) == [root.name]


def test_a_probe_leaves_no_file(storage_and_root):
    storage, root, _ = storage_and_root
    storage.probe()
    assert os.listdir(root) == []


def test_a_probe_of_an_unwritable_folder_names_it(tmp_path):
    (tmp_path / "file").write_text("")
    storage = from_config({"type": "directory", "container_path": str(tmp_path / "file")}, {})
    with pytest.raises(StorageError, match="cannot write in checkpoint storage"):
        storage.probe()


def test_storage_path_may_not_leave_its_host_path(tmp_path):
    with pytest.raises(StorageError, match="leaves host_path"):
        from_config({"type": "shared_fs", "host_path": "/h", "storage_path": "../x"}, {"DET_SHARED_FS": str(tmp_path)})
