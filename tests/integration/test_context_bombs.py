"""A context that unpacks to a gigabyte is refused, and never expanded in the master's memory."""

import asyncio
import hashlib
import time

import pytest
import zstandard
from tests.support.cluster import PASSWORD, Cluster
from tests.support.heartbeat import heartbeat
from tests.support.waiting import eventually

from determined_master.auth.passwords import client_hash
from determined_master.experiments import repository as experiments

pytestmark = pytest.mark.budget(15, "packs large archives")

GIGABYTE = 10**9
READERS = 20
CONNECTIONS = 16
"""Number of connections for reading, see db/engine.py."""
MAX_LOGIN_SECONDS = 3.0


def bomb() -> bytes:
    piece = bytes(1 << 20)
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join([*(packer.compress(piece) for _ in range(GIGABYTE // len(piece))), packer.flush()])


async def test_a_bomb_is_refused_at_upload(cluster: Cluster):
    data = bomb()
    digest = hashlib.sha256(data).hexdigest()
    answer = await cluster.client.put(f"/detent/contexts/{digest}", content=data)
    assert answer.status_code == 400, answer.text
    assert "larger than the limit" in answer.text
    assert (await cluster.client.head(f"/detent/contexts/{digest}")).status_code == 404
    assert not [path for path in cluster.master.blobs.folder.iterdir() if not path.name.startswith(".")]


async def test_a_bomb_that_an_older_master_stored_is_not_sent(cluster: Cluster):
    digest = cluster.master.blobs.keep_bytes(bomb())
    number = await cluster.create()
    async with cluster.master.database.write() as session:
        await experiments.change(session, await experiments.get(session, number), context_hash=digest)
    async with heartbeat() as heart:
        answer = await cluster.client.get(f"/api/v1/experiments/{number}/model_def")
    assert answer.status_code == 400, answer.text
    assert "larger than the limit" in answer.text
    assert heart.longest_gap < 1.0


async def test_the_archive_of_a_context_is_cached(cluster: Cluster):
    files = [{"path": "run.py", "type": 48, "content": "cGFzcwo=", "mode": 420, "mtime": "1700000000"}]
    number = await cluster.create(modelDefinition=files)
    first = await cluster.get(f"/api/v1/experiments/{number}/model_def")
    assert first["b64Tgz"]
    assert list(cluster.master.model_defs.values()) == [first["b64Tgz"]]
    assert await cluster.get(f"/api/v1/experiments/{number}/model_def") == first


@pytest.mark.long
async def test_many_readers_of_a_bomb_do_not_delay_a_login(cluster: Cluster):
    """The contexts are read one after the other, outside the event loop."""
    digest = cluster.master.blobs.keep_bytes(bomb())
    number = await cluster.create()
    async with cluster.master.database.write() as session:
        await experiments.change(session, await experiments.get(session, number), context_hash=digest)
    readers = [
        asyncio.create_task(cluster.client.get(f"/api/v1/experiments/{number}/model_def")) for _ in range(READERS)
    ]
    await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
    body = {"username": "admin", "password": client_hash(PASSWORD), "isHashed": True}
    start = time.monotonic()
    answer = await cluster.client.post("/api/v1/auth/login", json=body)
    seconds = time.monotonic() - start
    are_read = [reader.done() for reader in readers]
    answers = await asyncio.gather(*readers)
    assert answer.status_code == 200, answer.text
    assert {each.status_code for each in answers} == {400}
    assert not all(are_read)
    assert seconds < MAX_LOGIN_SECONDS


async def test_readers_of_contexts_hold_no_connection(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    """There are fewer connections than readers, so a login would wait if each reader held one."""
    number = await cluster.create()
    digest = cluster.master.blobs.keep_bytes(b"a context")
    async with cluster.master.database.write() as session:
        await experiments.change(session, await experiments.get(session, number), context_hash=digest)
    goes_on = asyncio.Event()
    entered: list[object] = []

    async def held(*arguments: object) -> str:
        entered.append(arguments)
        await goes_on.wait()
        return "made"

    monkeypatch.setattr(cluster.master.unpacker, "run", held)
    readers = [
        asyncio.create_task(cluster.client.get(f"/api/v1/experiments/{number}/model_def")) for _ in range(READERS)
    ]
    await eventually(lambda: len(entered) >= CONNECTIONS)
    try:
        async with asyncio.timeout(20):
            body = {"username": "admin", "password": client_hash(PASSWORD), "isHashed": True}
            answer = await cluster.client.post("/api/v1/auth/login", json=body)
    finally:
        goes_on.set()
    assert answer.status_code == 200, answer.text
    assert {each.json()["b64Tgz"] for each in await asyncio.gather(*readers)} == {"made"}
