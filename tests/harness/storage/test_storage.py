"""One suite for every storage: whole or not at all, and errors that name the place."""

import errno
import json
import os

import pytest

from determined.errors import StorageError
from determined.storage import from_config
from determined.storage.base import HASHES_FILE


@pytest.fixture(params=["shared_fs", "directory"])
def made(request, tmp_path):
    """A storage and its root."""
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


def nothing(folder):
    pass


def store(storage, uuid="u1", **files):
    with storage.store_path(uuid, nothing) as path:
        for name, text in files.items():
            (path / name).write_text(text)


def test_round_trip(made, tmp_path):
    storage, root, _ = made
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "b").write_text("bb")
    (source / "a").write_text("a")
    storage.upload(source, "u1", ["a", "sub/", "sub/b"], lambda folder: (folder / "metadata.json").write_text("{}"))
    assert storage.resources("u1") == {"a": 1, "sub/": 0, "sub/b": 2, "metadata.json": 2}
    assert set(json.loads((root / "u1" / HASHES_FILE).read_text())) == {"a", "sub/b", "metadata.json"}
    storage.download("u1", tmp_path / "back", lambda name: name.startswith("sub"))
    assert (tmp_path / "back" / "sub" / "b").read_text() == "bb"
    assert not (tmp_path / "back" / "a").exists()
    assert storage.read("u1", "a") == b"a"
    with storage.restore_path("u1") as path:
        assert (path / "a").read_text() == "a"
    storage.delete("u1")
    storage.delete("u1")
    assert os.listdir(root) == []


def test_nothing_is_seen_before_the_end(made):
    storage, root, _ = made
    with storage.store_path("u1", nothing) as path:
        (path / "a").write_text("a")
        assert not (root / "u1").exists()
        assert path.parent == root
    assert (root / "u1" / "a").read_text() == "a"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.ESTALE])
def test_a_full_disk_names_the_place_and_keeps_the_last_good_one(made, number):
    storage, root, shown = made
    store(storage, "good", a="1")

    def fill(path):
        (path / "half").write_text("x")
        raise OSError(number, os.strerror(number), str(path / "half"))

    with pytest.raises(StorageError) as failed, storage.store_path("bad", fill):
        pass
    assert shown in str(failed.value)
    assert "last good checkpoint is kept" in str(failed.value)
    assert os.listdir(root) == ["good"]


def test_a_users_own_error_passes(made):
    storage, root, _ = made
    with pytest.raises(FileNotFoundError, match="mine"), storage.store_path("u", nothing):
        os.stat("/nowhere/mine")
    assert os.listdir(root) == []


def test_a_checkpoint_that_is_not_there(made):
    storage, _, shown = made
    with pytest.raises(StorageError, match="u9 is not in") as failed, storage.restore_path("u9"):
        pass
    assert shown in str(failed.value)


def test_probe(made):
    storage, root, _ = made
    storage.probe()
    assert os.listdir(root) == []


def test_probe_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    storage = from_config({"type": "directory", "container_path": str(tmp_path / "file")}, {})
    with pytest.raises(StorageError, match="cannot write in checkpoint storage"):
        storage.probe()


def test_storage_path_may_not_leave_its_host_path(tmp_path):
    with pytest.raises(StorageError, match="leaves host_path"):
        from_config({"type": "shared_fs", "host_path": "/h", "storage_path": "../x"}, {"DET_SHARED_FS": str(tmp_path)})
    with pytest.raises(StorageError, match="not offered"):
        from_config({"type": "s3", "bucket": "b"}, {})
