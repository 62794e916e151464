"""Context archives that unpack to a gigabyte, a million files or links outward: master and agent refuse them."""

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.context_bombs import KINDS, bomb, usage
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.process_memory import forget_peak, peak_mib
from tests.support.seeded_cluster import FILE

from determined.context import ContextError, unpack
from determined_master.data_folder.blobs import Blobs

pytestmark = pytest.mark.budget(40, "uploads and unpacks eight bombs")

CONFIG = "{entrypoint: 'true', name: n, searcher: {name: single, metric: m}}"
MAX_GROWTH_MIB = 100
MAX_ANSWER_BYTES = 10_000
MAX_BYTES, MAX_ENTRIES = 600_000_000, 150_000
SAMPLE = {"empty files": 0.12, "deep folders": 0.1}
"""Size of the sample of a kind, as part of the whole bomb. It exceeds the limits too."""
ARCHIVES_END_EARLY = ("zeros",)
"""Kinds that unpack to nothing: two empty blocks end an archive."""
long = pytest.mark.long


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path / "cluster", slots=0) as created:
        yield created


def plant(cluster: LiveCluster, data: bytes) -> int:
    """Stores a context as an older master would have; returns its experiment."""
    answer = cluster.session.post("/api/v1/experiments", {"config": CONFIG, "modelDefinition": [FILE]})
    digest = Blobs(cluster.data / "blobs").keep_bytes(data)
    number = int(answer["experiment"]["id"])
    connection = sqlite3.connect(cluster.data / "master.sqlite")
    with connection:
        connection.execute("UPDATE experiments SET context_hash = ? WHERE id = ?", (digest, number))
    connection.close()
    return number


def check_submission(client: httpx.Client, kind: str, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    answer = client.put(f"/detent/contexts/{digest}", content=data)
    assert answer.status_code == 400, f"{kind}: {answer.text}"
    assert "context" in answer.json()["error"]["error"], kind
    assert client.head(f"/detent/contexts/{digest}").status_code == 404
    body = {"config": CONFIG, "contextHash": digest}
    assert client.post("/api/v1/experiments", json=body).status_code == 404


def check_reads(client: httpx.Client, kind: str, number: int) -> None:
    """Checks that the archive is refused as a whole, and that routes that read one member or list names answer little."""
    answer = client.get(f"/api/v1/experiments/{number}/model_def")
    assert answer.status_code == 400, f"{kind}: {answer.text[:200]}"
    assert "context" in answer.json()["error"]["error"], kind
    for method, path, body in (
        ("GET", f"/api/v1/experiments/{number}/file_tree", None),
        ("POST", f"/api/v1/experiments/{number}/file", {"path": "run.py"}),
        ("GET", f"/detent/experiments/{number}/file?path=run.py", None),
        ("POST", f"/api/v1/experiments/{number}/file", {"path": "data/../../../etc/passwd"}),
    ):
        answer = client.request(method, path, json=body)
        assert answer.status_code in (200, 400, 404), f"{kind}: {path}: {answer.text[:200]}"
        assert len(answer.content) < MAX_ANSWER_BYTES, f"{kind}: {path}"


@pytest.mark.parametrize("is_whole", [pytest.param(False, id="sample"), pytest.param(True, id="all", marks=long)])
def test_the_master_refuses_each_kind_of_bomb_at_submission_and_at_reading(cluster: LiveCluster, is_whole: bool):
    assert cluster.master is not None
    headers = {"Authorization": cluster.session.headers["Authorization"]}
    sent, largest = 0, 0.0
    with httpx.Client(base_url=cluster.url, headers=headers, timeout=360) as client:
        before = forget_peak(cluster.master.pid)
        for kind in list(KINDS)[:: 1 if is_whole else 2]:
            data = bomb(kind, 1.0 if is_whole else SAMPLE.get(kind, 0.6))
            check_submission(client, kind, data)
            check_reads(client, kind, plant(cluster, data))
            sent, largest = sent + len(data), peak_mib(cluster.master.pid) - before
    print(f"bombs of {sent} bytes together were refused; the master's memory grew by {largest:.0f} MiB")
    assert largest < MAX_GROWTH_MIB


@pytest.mark.parametrize("kind", [pytest.param(each, marks=long) if each == "empty files" else each for each in KINDS])
def test_unpacking_stops_at_each_kind_of_bomb(tmp_path: Path, kind: str):
    """Unpacks as the agent does."""
    target = tmp_path / "work"
    data = bomb(kind)
    if kind in ARCHIVES_END_EARLY:
        unpack(data, target)
    else:
        with pytest.raises(ContextError, match="context"):
            unpack(data, target)
    size, entries = usage(tmp_path)
    print(f"{kind}: {len(data)} bytes unpacked to {size} bytes and {entries} entries before they were refused")
    assert size < MAX_BYTES
    assert entries < MAX_ENTRIES
    assert not (target / "data" / "written").exists()


def test_the_file_tree_of_a_context_with_3000_files_is_complete(cluster: LiveCluster):
    """The master builds a tree of this size in another process."""
    files = [FILE | {"path": f"folder/{number}.py"} for number in range(3000)]
    answer = cluster.session.post("/api/v1/experiments", {"config": CONFIG, "modelDefinition": files})
    tree = cluster.session.get(f"/api/v1/experiments/{answer['experiment']['id']}/file_tree")
    (folder,) = tree["files"]
    assert sorted(node["path"] for node in folder["files"]) == sorted(each["path"] for each in files)
    assert {node["contentLength"] for node in folder["files"]} == {5}
    assert {node["isDir"] for node in folder["files"]} == {False}
