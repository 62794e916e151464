"""A context that unpacks to a gigabyte is refused, and never expanded in the master's memory."""

import hashlib

import zstandard
from tests.support.cluster import Cluster
from tests.support.heartbeat import heartbeat

from determined_master.experiments import repository as experiments

GIGABYTE = 10**9


def bomb() -> bytes:
    piece = bytes(1 << 20)
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join([*(packer.compress(piece) for _ in range(GIGABYTE // len(piece))), packer.flush()])


async def test_a_bomb_is_refused_at_upload(one: Cluster):
    data = bomb()
    digest = hashlib.sha256(data).hexdigest()
    answer = await one.client.put(f"/detent/contexts/{digest}", content=data)
    assert answer.status_code == 400, answer.text
    assert "unpacks to far more" in answer.text
    assert (await one.client.head(f"/detent/contexts/{digest}")).status_code == 404
    assert not [path for path in one.master.blobs.folder.iterdir() if not path.name.startswith(".")]


async def test_a_bomb_that_an_older_master_stored_is_not_sent(one: Cluster):
    digest = one.master.blobs.keep_bytes(bomb())
    number = await one.create()
    async with one.master.database.write() as session:
        await experiments.change(session, await experiments.get(session, number), context_hash=digest)
    async with heartbeat() as heart:
        answer = await one.client.get(f"/api/v1/experiments/{number}/model_def")
    assert answer.status_code == 400, answer.text
    assert "unpacks to far more" in answer.text
    assert heart.longest_gap < 1.0


async def test_what_was_made_once_is_kept(one: Cluster):
    files = [{"path": "run.py", "type": 48, "content": "cGFzcwo=", "mode": 420, "mtime": "1700000000"}]
    number = await one.create(modelDefinition=files)
    first = await one.get(f"/api/v1/experiments/{number}/model_def")
    assert first["b64Tgz"]
    assert list(one.master.model_defs.values()) == [first["b64Tgz"]]
    assert await one.get(f"/api/v1/experiments/{number}/model_def") == first
