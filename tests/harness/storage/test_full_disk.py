"""A checkpoint on a full disk: it waits until there is space."""

import threading
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.small_disk import SmallDisk, disk_fixture
from tests.support.waiting import wait_until

from determined.storage import directory
from determined.storage.directory import DirectoryStorage

SIZE = 3 << 20


disk = disk_fixture("8m")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "RETRY_SECONDS", 0.02)


def write_nothing(_folder: Path) -> None:
    pass


def test_a_checkpoint_is_not_begun_while_the_disk_is_full(disk: SmallDisk, caplog: pytest.LogCaptureFixture):
    disk.fill()
    storage, uuid = DirectoryStorage(disk.path / "checkpoints"), str(uuid4())
    (disk.path / "checkpoints").mkdir()

    def store() -> None:
        with storage.store_path(uuid, write_nothing) as path:
            (path / "weights").write_bytes(bytes(SIZE))

    thread = threading.Thread(target=store)
    thread.start()
    wait_until(lambda: "the checkpoint waits" in caplog.text, what="a warning")
    assert list((disk.path / "checkpoints").iterdir()) == []
    disk.free()
    thread.join(60)
    assert storage.resources(uuid) == {"weights": SIZE}
    assert caplog.text.count("waits") == 1


def test_an_upload_that_fills_the_disk_is_repeated(disk: SmallDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "weights").write_bytes(bytes(SIZE))
    storage, uuid = DirectoryStorage(disk.path / "checkpoints"), str(uuid4())
    other = disk.path / "other"
    other.write_bytes(bytes(6 << 20))
    thread = threading.Thread(target=storage.upload, args=(tmp_path, uuid, ["weights"], write_nothing))
    thread.start()
    wait_until(lambda: "is stored when there is space again" in caplog.text, what="a warning")
    other.unlink()
    thread.join(60)
    assert storage.resources(uuid) == {"weights": SIZE}
    assert [path.name for path in (disk.path / "checkpoints").iterdir()] == [uuid]
