"""A full data disk: writes answer 503, `/health` and `/detent/storage` report it, and work goes on afterwards."""

import hashlib
import logging
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import event
from tests.support.cluster import CONFIG, PASSWORD, Cluster, open_cluster
from tests.support.small_disk import SmallDisk, disk_fixture
from tests.support.waiting import eventually

from determined_master.auth.passwords import client_hash
from determined_master.errors import StorageUnavailable
from determined_master.loops.storage import StorageLoop

pytestmark = pytest.mark.sqlite

disk = disk_fixture("16m", "made/data")


@pytest.fixture
async def cluster(disk: SmallDisk) -> AsyncIterator[Cluster]:
    async with open_cluster(disk.path.parent) as created:
        yield created


def report(trial_id: int, steps: int) -> dict[str, Any]:
    metrics = {"avgMetrics": {"loss": 1.0 / steps, "text": "x" * 4000}}
    body = {"trialId": trial_id, "trialRunId": 1, "stepsCompleted": steps, "metrics": metrics}
    return {"metrics": body, "group": "training"}


def assert_waits(answer: Any) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["error"]["reason"] == "Unavailable"
    assert "disk is full" in answer.json()["error"]["error"]
    assert int(answer.headers["Retry-After"]) >= 1


async def fill(cluster: Cluster, disk: SmallDisk, trial_id: int) -> int:
    """Fills the disk and the free space of the database; returns the first step whose report was refused."""
    disk.fill()
    for steps in range(1, 2000):
        answer = await cluster.post(f"/api/v1/trials/{trial_id}/metrics", report(trial_id, steps))
        if answer.status_code != 200:
            assert_waits(answer)
            return steps
    raise AssertionError("the disk did not fill up")


async def test_every_kind_of_write_answers_503_on_a_full_disk_and_works_again_afterwards(
    cluster: Cluster, disk: SmallDisk
):
    agent = await cluster.join(slots=2)
    experiment_id = await cluster.create(CONFIG)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    trial_id = (await cluster.get(f"/api/v1/experiments/{experiment_id}/trials"))["trials"][0]["id"]
    first = await fill(cluster, disk, trial_id)

    task_id = desired.spec.task_id if desired.spec else ""
    assert_waits(await cluster.post("/api/v1/task/logs", {"logs": [{"taskId": task_id, "log": "x" * 60_000}]}))
    assert_waits(await cluster.client.post("/api/v1/experiments", json={"config": CONFIG + "#" + "x" * 60_000}))
    assert_waits(
        await cluster.post(f"/api/v1/trials/{trial_id}/progress", {"progress": 0.5, "trialId": trial_id, "isRaw": True})
    )
    body = bytes(200_000)
    assert_waits(await cluster.client.put(f"/detent/contexts/{hashlib.sha256(body).hexdigest()}", content=body))
    assert [path.name for path in (disk.path / "blobs").iterdir()] == []
    # Reading goes on.
    assert (await cluster.get(f"/api/v1/experiments/{experiment_id}"))["experiment"]["id"] == experiment_id

    disk.free()
    for steps in range(first, first + 3):
        answer = await cluster.post(f"/api/v1/trials/{trial_id}/metrics", report(trial_id, steps))
        assert answer.status_code == 200, answer.text
    assert (await cluster.get(f"/api/v1/trials/{trial_id}"))["trial"]["totalBatchesProcessed"] == first + 2


async def test_health_reports_a_full_disk_until_there_is_space(cluster: Cluster, disk: SmallDisk):
    agent = await cluster.join()
    experiment_id = await cluster.create()
    await agent.run((await agent.wait_for_desired())[0])
    trial_id = (await cluster.get(f"/api/v1/experiments/{experiment_id}/trials"))["trials"][0]["id"]
    assert (await cluster.get("/health"))["status"] == "up"
    await fill(cluster, disk, trial_id)
    answer = await cluster.client.get("/health", headers={"Authorization": ""})
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "down",
        "database": "up",
        "resource_managers": [{"cluster_name": "", "status": "up"}],
        "storage": [{"name": "data", "status": "full"}],
    }
    await StorageLoop(cluster.master.storage, cluster.master.notifications).tick()
    storage = await cluster.get("/detent/storage")
    assert not storage["isWritable"]
    assert storage["failingSince"]
    (data,) = storage["storage"]
    assert data["path"] == str(disk.path)
    assert data["freeBytes"] < 1 << 16 < data["totalBytes"]
    disk.free()
    await StorageLoop(cluster.master.storage, cluster.master.notifications).tick()
    assert (await cluster.get("/health"))["status"] == "up"
    assert (await cluster.get("/detent/storage"))["failingSince"] is None


async def test_a_failing_disk_is_reported_as_failing_and_not_as_full(cluster: Cluster):
    def fail(*_: Any) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
        raise error

    engine = cluster.master.database.write_engine.sync_engine
    event.listen(engine, "do_execute", fail)
    answer = await cluster.client.post("/api/v1/experiments", json={"config": CONFIG})
    event.remove(engine, "do_execute", fail)
    assert answer.status_code == 503, answer.text
    assert "cannot write to its disk" in answer.json()["error"]["error"]
    health = await cluster.client.get("/health")
    assert (health.status_code, health.json()["storage"][0]["status"]) == (503, "failing")
    await StorageLoop(cluster.master.storage, cluster.master.notifications).tick()
    assert (await cluster.get("/health"))["status"] == "up"


async def test_only_admins_see_the_paths_of_the_storage(cluster: Cluster):
    body = {"username": "determined", "password": client_hash(PASSWORD), "isHashed": True}
    token = (await cluster.post("/api/v1/auth/login", body)).json()["token"]
    answer = await cluster.client.get("/detent/storage", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert answer.json()["storage"][0]["path"] == ""
    assert answer.json()["storage"][0]["totalBytes"] > 0


async def test_an_idle_master_notices_a_full_disk(cluster: Cluster, disk: SmallDisk):
    disk.fill()
    await StorageLoop(cluster.master.storage, cluster.master.notifications).tick()
    await StorageLoop(cluster.master.storage, cluster.master.notifications).tick()
    assert not cluster.master.storage.is_writable
    assert not (disk.path / ".write-probe").exists()


async def test_a_report_of_an_agent_is_stored_when_there_is_space_again(
    cluster: Cluster, disk: SmallDisk, caplog: pytest.LogCaptureFixture
):
    """Reports of agents wait too, and no back-off of single containers delays them afterwards."""
    agent = await cluster.join()
    experiment_id = await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    trial_id = (await cluster.get(f"/api/v1/experiments/{experiment_id}/trials"))["trials"][0]["id"]
    await fill(cluster, disk, trial_id)
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            with pytest.raises(StorageUnavailable):
                await agent.exit(desired)
    assert [r for r in caplog.records if r.exc_info] == []
    assert len(caplog.records) < 12, "each loop says once that it waits"
    disk.free()
    await agent.exit(desired)
    await eventually(lambda: _has_ended(cluster, experiment_id))


async def _has_ended(cluster: Cluster, experiment_id: int) -> bool:
    return await cluster.state(experiment_id) in ("STATE_COMPLETED", "COMPLETED")
