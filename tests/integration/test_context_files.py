"""Files of a context: the tree, single files on both routes, and binary, long, missing and unsafe ones."""

import base64
import io
import tarfile
import tempfile
import threading
from typing import Any

import pytest
import zstandard
from tests.support.cluster import Cluster

from determined_master.api.context_body import SPOOL_ABOVE
from determined_master.api.v1.context_files import MAX_TEXT_BYTES
from determined_master.experiments import repository as experiments

pytestmark = pytest.mark.budget(15, "packs large archives")


def file(path: str, content: bytes) -> dict[str, Any]:
    return {"path": path, "type": 48, "content": base64.b64encode(content).decode(), "mode": 420, "mtime": "1700000000"}


FILES = [
    file("run.py", b"pass\n"),
    file("sub/deep/m\u00fc <b>.txt", "gr\u00fcn".encode()),
    file("sub/picture.png", b"\x89PNG\0\0"),
    file("long.txt", b"a" + "\u00fc".encode() * MAX_TEXT_BYTES),
]


async def fetch(cluster: Cluster, path: str) -> Any:
    answer = await cluster.client.get("/detent/experiments/1/file", params={"path": path})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("content", [b"pass", b"#" * (2 * SPOOL_ABOVE)], ids=["small", "large"])
async def test_a_folder_that_arrived_empty_is_named_in_the_log(cluster: Cluster, content: bytes):
    folder = file("shared", b"") | {"type": 53, "mode": 0o40755}
    files = [file("run.py", content), folder]
    await cluster.create(modelDefinition=files)
    log = (await cluster.client.get("/api/v1/trials/1/logs")).text
    assert "left out: shared/: it arrived empty; for a link to a folder" in log
    answer = await cluster.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}, "files": files})
    log = (await cluster.client.get(f"/api/v1/tasks/{answer.json()['command']['id']}/logs")).text
    assert "left out: shared/: it arrived empty; for a link to a folder" in log
    await cluster.create(modelDefinition=[file("run.py", b"pass")], contextNotes=["forged"])
    assert (await cluster.client.get("/api/v1/trials/2/logs")).text == ""


async def test_the_file_tree_lists_folders_and_types(cluster: Cluster):
    await cluster.create(modelDefinition=FILES)
    tree = (await cluster.get("/api/v1/experiments/1/file_tree"))["files"]
    assert [node["name"] for node in tree] == ["long.txt", "run.py", "sub"]
    assert tree[1] == {
        "path": "run.py",
        "name": "run.py",
        "isDir": False,
        "contentLength": 5,
        "contentType": "text/plain; charset=utf-8",
        "modifiedTime": "2023-11-14T22:13:20.000000Z",
        "files": [],
    }
    deep, picture = tree[2]["files"]
    assert (tree[2]["isDir"], deep["isDir"], picture["contentType"]) == (True, True, "image/png")
    assert [node["path"] for node in deep["files"]] == ["sub/deep/m\u00fc <b>.txt"]


async def test_a_file_of_a_context_is_returned_and_a_long_one_truncated(cluster: Cluster):
    await cluster.create(modelDefinition=FILES)
    name = "sub/deep/m\u00fc <b>.txt"
    content = await fetch(cluster, name)
    assert content == {"path": name, "text": "gr\u00fcn", "size": 5, "binary": False, "truncated": False}
    answer = (await cluster.post("/api/v1/experiments/1/file", {"path": name})).json()
    assert base64.b64decode(answer["file"]).decode() == "gr\u00fcn"
    picture = await fetch(cluster, "sub/picture.png")
    assert (picture["text"], picture["binary"], picture["size"]) == ("", True, 6)
    long = await fetch(cluster, "long.txt")
    assert (long["truncated"], long["size"], len(long["text"])) == (True, 2 * MAX_TEXT_BYTES + 1, MAX_TEXT_BYTES // 2)
    assert set(long["text"]) == {"a", "\u00fc"}


@pytest.mark.parametrize(
    ("path", "status"), [("none", 404), ("sub", 404), ("../x", 400), ("/etc/passwd", 400), ("", 404)]
)
async def test_a_missing_or_unsafe_path_is_refused(cluster: Cluster, path: str, status: int):
    await cluster.create(modelDefinition=FILES)
    assert (await cluster.client.get("/detent/experiments/1/file", params={"path": path})).status_code == status
    assert (await cluster.post("/api/v1/experiments/1/file", {"path": path})).status_code == status


async def test_an_experiment_without_files_has_an_empty_tree(cluster: Cluster):
    await cluster.create()
    assert await cluster.get("/api/v1/experiments/1/file_tree") == {"files": []}
    assert (await cluster.client.get("/detent/experiments/1/file", params={"path": "x"})).status_code == 404
    assert (await cluster.client.get("/api/v1/experiments/9/file_tree")).status_code == 404


@pytest.mark.parametrize(("size", "in_loop"), [(1000, True), (2 * SPOOL_ABOVE, False)])
async def test_a_large_body_is_closed_outside_the_event_loop(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, size: int, in_loop: bool
):
    """Freeing its pages takes longer than a request."""
    closed: list[bool] = []
    close = tempfile.SpooledTemporaryFile.close

    def counted(file: "tempfile.SpooledTemporaryFile[bytes]") -> None:
        closed.append(threading.current_thread() is threading.main_thread())
        close(file)

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "close", counted)
    await cluster.create(modelDefinition=[file("a.bin", b"a" * size)])
    assert closed == [in_loop]


@pytest.mark.parametrize("mtime", ["nan", "1e12", str(2**60), "-1e300"])
async def test_a_time_that_is_none_and_a_name_that_is_no_text_leave_the_tree_readable(cluster: Cluster, mtime: str):
    odd = tarfile.TarInfo("odd")
    odd.pax_headers = {"mtime": mtime}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(odd)
        tar.format = tarfile.GNU_FORMAT
        tar.addfile(tarfile.TarInfo("caf\udce9/menu"))
    digest = cluster.master.blobs.keep_bytes(zstandard.compress(content.getvalue()))
    number = await cluster.create()
    async with cluster.master.database.write() as session:
        await experiments.change(session, await experiments.get(session, number), context_hash=digest)
    tree = (await cluster.get("/api/v1/experiments/1/file_tree"))["files"]
    assert [(node["name"], node["modifiedTime"]) for node in tree] == [("caf?", None), ("odd", None)]
    assert tree[0]["files"][0]["path"] == "caf?/menu"
