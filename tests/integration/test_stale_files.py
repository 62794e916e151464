"""Uploads that broke off and contexts that no experiment names are removed, by age and by total size."""

import os
import time
from pathlib import Path

from tests.support.cluster import Cluster, cluster

from determined.context import pack
from determined_master.loops.deletion import Deletion

HOUR = 3600.0


def aged(path: Path, age: float) -> Path:
    os.utime(path, (time.time() - age,) * 2)
    return path


def make(one: Cluster, name: str, age: float, size: int = 10) -> Path:
    path = one.master.blobs.folder / name
    path.write_bytes(bytes(size))
    return aged(path, age)


async def test_only_old_and_unnamed_contexts_are_removed(tmp_path: Path):
    async with cluster(tmp_path) as one:
        (tmp_path / "context").mkdir()
        (tmp_path / "context" / "run.py").write_text("pass")
        packed = pack(tmp_path / "context")
        answer = await one.client.put(f"/detent/contexts/{packed.hash}", content=packed.data)
        assert answer.status_code == 200
        await one.create(contextHash=packed.hash)
        named = aged(one.master.blobs.path(packed.hash), 9 * HOUR)
        old = [make(one, ".incoming-abcd_123", 2 * HOUR), make(one, "1" * 64, 2 * HOUR)]
        young = [make(one, ".incoming-efgh", 60), make(one, "2" * 64, 60)]
        foreign = [make(one, "notes.txt", 9 * HOUR), make(one, ".incoming-", 9 * HOUR)]
        (one.master.blobs.folder / "folder").mkdir()
        (tmp_path / "mine").write_text("mine")
        link = one.master.blobs.folder / ("3" * 64)
        link.symlink_to(tmp_path / "mine")
        os.utime(link, (0, 0), follow_symlinks=False)
        await Deletion(one.master).tick()
        assert not any(path.exists() for path in old)
        assert all(path.exists() for path in [named, *young, *foreign, link, tmp_path / "mine"])


async def test_beyond_the_total_size_the_oldest_contexts_are_removed_first(tmp_path: Path):
    async with cluster(tmp_path, stale_file_bytes=2500) as one:
        paths = [make(one, f".incoming-{age}", age, size=1000) for age in (3000, 2000, 1000, 1)]
        await Deletion(one.master).tick()
        assert [path.exists() for path in paths] == [False, False, True, True]


async def test_a_context_that_is_asked_for_counts_as_new(tmp_path: Path):
    """The client that asks does not send it again, and names it in its next request."""
    async with cluster(tmp_path) as one:
        path = make(one, "4" * 64, 1000)
        answer = await one.client.head(f"/detent/contexts/{path.name}")
        assert answer.status_code == 200
        assert time.time() - path.stat().st_mtime < 500
