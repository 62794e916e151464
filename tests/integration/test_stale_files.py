"""Interrupted uploads and contexts that no experiment names are removed, by age and by total size."""

import os
import time
from pathlib import Path

from tests.support.cluster import Cluster, open_cluster

from determined.context import pack
from determined_master.loops.deletion import Deletion

HOUR = 3600.0


def set_age(path: Path, age: float) -> Path:
    os.utime(path, (time.time() - age,) * 2)
    return path


def make(cluster: Cluster, name: str, age: float, size: int = 10) -> Path:
    path = cluster.master.blobs.folder / name
    path.write_bytes(bytes(size))
    return set_age(path, age)


async def test_only_old_and_unnamed_contexts_are_removed(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        (tmp_path / "context").mkdir()
        (tmp_path / "context" / "run.py").write_text("pass")
        packed = pack(tmp_path / "context")
        answer = await cluster.client.put(f"/detent/contexts/{packed.hash}", content=packed.data)
        assert answer.status_code == 200
        await cluster.create(contextHash=packed.hash)
        named = set_age(cluster.master.blobs.path(packed.hash), 9 * HOUR)
        old = [make(cluster, ".incoming-abcd_123", 2 * HOUR), make(cluster, "1" * 64, 2 * HOUR)]
        young = [make(cluster, ".incoming-efgh", 60), make(cluster, "2" * 64, 60)]
        foreign = [make(cluster, "notes.txt", 9 * HOUR), make(cluster, ".incoming-", 9 * HOUR)]
        (cluster.master.blobs.folder / "folder").mkdir()
        (tmp_path / "mine").write_text("mine")
        link = cluster.master.blobs.folder / ("3" * 64)
        link.symlink_to(tmp_path / "mine")
        os.utime(link, (0, 0), follow_symlinks=False)
        await Deletion(cluster.master).tick()
        assert not any(path.exists() for path in old)
        assert all(path.exists() for path in [named, *young, *foreign, link, tmp_path / "mine"])


async def test_beyond_the_total_size_the_oldest_contexts_are_removed_first(tmp_path: Path):
    async with open_cluster(tmp_path, stale_file_bytes=2500) as cluster:
        paths = [make(cluster, f".incoming-{age}", age, size=1000) for age in (3000, 2000, 1000, 1)]
        await Deletion(cluster.master).tick()
        assert [path.exists() for path in paths] == [False, False, True, True]


async def test_a_context_that_is_asked_for_counts_as_new(tmp_path: Path):
    """The client that asks for it does not upload it again, and names it in its next request."""
    async with open_cluster(tmp_path) as cluster:
        path = make(cluster, "4" * 64, 1000)
        answer = await cluster.client.head(f"/detent/contexts/{path.name}")
        assert answer.status_code == 200
        assert time.time() - path.stat().st_mtime < 500


async def test_a_context_that_is_asked_for_after_it_was_listed_stays(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        path = make(cluster, "5" * 64, 9 * HOUR)
        (listed,) = cluster.master.blobs.all()
        assert (await cluster.client.head(f"/detent/contexts/{path.name}")).status_code == 200
        cluster.master.blobs.drop(listed)
        assert path.exists()
