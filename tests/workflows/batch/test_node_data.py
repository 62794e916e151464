"""The data of a job on the disk of a node, after jobs that were killed."""

import fcntl
import shutil
import tarfile
import threading
from pathlib import Path
from typing import IO

import pytest
from tests.support.waiting import wait_until

from determined_workflows.batch.task import node_data
from determined_workflows.batch.task.node_data import NodeData


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("1")
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        archive.add(tmp_path / "data", "data")
    return tmp_path / "data.tar"


def test_what_a_killed_job_left_is_removed_by_one_rank_while_the_others_wait(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "node" / "job-7"
    folder.mkdir(parents=True)
    (tmp_path / "node").chmod(0o700)
    for suffix in (".use", ".setup"):
        folder.with_name(folder.name + suffix).touch()
    ranks = [NodeData(str(folder), True, str(archive), "0" * 64, ["data"]) for _ in range(2)]
    second = threading.Thread(target=ranks[1].enter)
    removals: list[str] = []
    has_unpacked, is_waiting = threading.Event(), threading.Event()
    remove, lock = shutil.rmtree, fcntl.flock

    def removing(path: str, **options: bool) -> None:
        removals.append(path)
        if len(removals) == 1:
            second.start()
            wait_until(lambda: is_waiting.is_set() or len(removals) > 1, what="the other rank is there")
        else:
            has_unpacked.wait()
        remove(path, **options)

    def locking(file: IO[bytes], kind: int) -> None:
        if kind == fcntl.LOCK_EX:
            is_waiting.set()
        lock(file, kind)

    monkeypatch.setattr(node_data.shutil, "rmtree", removing)
    monkeypatch.setattr(node_data.fcntl, "flock", locking)
    ranks[0].enter()
    has_unpacked.set()
    second.join()
    assert removals == [str(folder)]
    assert (folder / "data" / "x").read_text() == "1"
    for rank in ranks:
        rank.leave()
    assert not folder.exists()
