"""Configurations near the limit of 1 MiB do not block the event loop of the master."""

import asyncio
import threading
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint
from tests.support.cluster import CONFIG, Cluster
from tests.support.heartbeat import heartbeat

from determined.config import masking
from determined.config.yaml_source import MAX_BYTES
from determined_master.api.schemas import experiments as schemas
from determined_master.experiments import repository as experiments

pytestmark = pytest.mark.budget(30, "creates and reads configurations of several megabytes")

MAX_GAP_SECONDS = 1.0
CHECKPOINTS = 5


def filled(head: str, line: str, limit: int = MAX_BYTES) -> str:
    """Returns CONFIG with as many lines as fit into the limit."""
    parts = [CONFIG, head]
    size = sum(map(len, parts))
    for number in count():
        part = line.format(number)
        size += len(part)
        if size > limit:
            return "".join(parts)
        parts.append(part)
    raise AssertionError


SECRETS = filled("data:\n  secrets:\n", "    key{}: hidden-and-longer-than-its-mask\n")
UNKNOWN = filled("", "unknown{}: 1\n")


async def ask_health(cluster: Cluster, stop: asyncio.Event) -> int:
    answered = 0
    while not stop.is_set():
        answer = await cluster.client.get("/health")
        assert answer.status_code == 200
        answered += 1
        await asyncio.sleep(0.02)
    return answered


@pytest.mark.parametrize(
    "text", [SECRETS, pytest.param(UNKNOWN, marks=pytest.mark.long)], ids=["secrets", "unknown fields"]
)
async def test_creating_and_reading_a_large_configuration_does_not_block_the_event_loop(cluster: Cluster, text: str):
    stop = asyncio.Event()
    async with heartbeat() as heart, asyncio.TaskGroup() as group:
        health = group.create_task(ask_health(cluster, stop))
        checked = await cluster.post("/detent/config/check", {"config": text})
        created = await cluster.post("/api/v1/experiments", {"config": text})
        listed = await cluster.client.get("/api/v1/experiments")
        origins = await cluster.client.get("/detent/experiments/1/config") if created.status_code == 200 else created
        stop.set()
    print(f"longest gap {heart.longest_gap:.3f} s, {health.result()} answers of /health")
    assert checked.status_code == 200
    assert checked.json()["ok"] is (text is not UNKNOWN)
    assert created.status_code == (400 if text is UNKNOWN else 200)
    assert listed.status_code == 200
    assert origins.status_code == created.status_code
    assert "hidden" not in listed.text + created.text
    assert health.result() > 10
    assert heart.longest_gap < MAX_GAP_SECONDS


async def test_a_configuration_that_is_too_large_is_refused_with_its_limit(cluster: Cluster):
    text = f"{CONFIG}# {'x' * MAX_BYTES}"
    answer = await cluster.post("/api/v1/experiments", {"config": text})
    assert answer.status_code == 400
    assert f"larger than {MAX_BYTES:,} bytes" in answer.text
    check = (await cluster.post("/detent/config/check", {"config": text})).json()
    assert check["ok"] is False


async def test_a_large_fork_takes_over_masked_secrets(cluster: Cluster):
    # Restored values are quoted, which makes the text longer.
    await cluster.create(filled("data:\n  secrets:\n", "    key{}: hidden\n", MAX_BYTES // 4))
    masked = (await cluster.get("/api/v1/experiments/1"))["experiment"]["originalConfig"]
    assert "hidden" not in masked
    await cluster.create(masked, parentId=1)
    async with cluster.master.database.read() as session:
        forked = await experiments.get(session, 2)
    assert forked.config["data"]["secrets"]["key0"] == "hidden"
    refused = await cluster.post("/api/v1/experiments", {"config": masked.replace("key0:", "other:"), "parentId": 1})
    assert refused.status_code == 400
    assert "data.secrets.other is masked" in refused.text


async def test_a_list_of_checkpoints_masks_a_configuration_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    """A long configuration is masked outside the event loop."""
    agent = await cluster.join()
    await cluster.create(filled("data:\n  secrets:\n", "    key{}: hidden\n", MAX_BYTES // 8))
    (desired,) = await agent.wait_for_desired()
    for number in range(CHECKPOINTS):
        await report_checkpoint(cluster, desired.allocation_id, checkpoint_uuid(number), number)
    threads: list[int] = []
    whole = masking.masked

    def masked(config: Mapping[str, Any]) -> dict[str, Any]:
        threads.append(threading.get_ident())
        return whole(config)

    monkeypatch.setattr(schemas, "masked", masked)
    answer = await cluster.get("/api/v1/experiments/1/checkpoints")
    assert len(answer["checkpoints"]) == CHECKPOINTS
    secrets = answer["checkpoints"][-1]["training"]["experimentConfig"]["data"]["secrets"]
    assert set(secrets.values()) == {masking.MASK}
    # In the event loop the index of columns may mask it meanwhile.
    assert len([each for each in threads if each != threading.get_ident()]) == 1
