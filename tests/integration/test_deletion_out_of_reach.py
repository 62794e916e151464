"""Deleting experiments whose checkpoints the master does not reach: a task of the owner removes the files first."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually

from determined.exec import gc_checkpoints
from determined.link.messages import DesiredContainer
from determined_master.db.models import CheckpointRow
from determined_master.tasks import repository as tasks

CONFIG = """
name: far
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
hyperparameters: {}
checkpoint_storage: {type: directory, container_path: %s, save_trial_latest: 10}
"""
FIRST, SECOND = checkpoint_uuid(1), checkpoint_uuid(2)


@dataclass
class Far:
    """An ended experiment with two checkpoints out of the master's reach."""

    cluster: Cluster
    agent: FakeAgent
    root: Path
    id: int
    known_ids: set[str]
    """Ids of containers that an earlier step of the test used."""

    async def delete(self) -> None:
        assert (await self.cluster.client.delete(f"/api/v1/experiments/{self.id}")).status_code == 200

    async def removal(self) -> tuple[DesiredContainer, dict[str, Any]]:
        """Waits for the next task that removes files, and runs it."""

        async def new() -> DesiredContainer | None:
            return next((each for each in await self.agent.desired() if each.container_id not in self.known_ids), None)

        desired = await eventually(new)
        assert desired is not None
        assert desired.spec is not None
        assert desired.spec.entrypoint == ["python3", "-m", "determined.exec.gc_checkpoints"]
        self.known_ids.add(desired.container_id)
        await self.agent.run(desired)
        return desired, dict(json.loads(desired.spec.environment["DETENT_CHECKPOINTS_TO_REMOVE"]))

    async def report(self, desired: DesiredContainer, failed: dict[str, str], uuids: list[str]) -> None:
        body = {"removed": [uuid for uuid in uuids if uuid not in failed], "failed": failed}
        answer = await self.cluster.post(
            "/detent/checkpoints/removed", body, **self.cluster.as_task(desired.allocation_id)
        )
        assert answer.status_code == 200, answer.text

    async def reaches(self, state: str) -> None:
        async def in_state() -> bool:
            return await self.cluster.state(self.id) == state

        await eventually(in_state)

    async def gone(self) -> None:
        async def missing() -> bool:
            return (await self.cluster.client.get(f"/api/v1/experiments/{self.id}")).status_code == 404

        await eventually(missing)

    async def text(self) -> str:
        return str((await self.cluster.get(f"/detent/experiments/{self.id}/status"))["text"])

    async def rows(self) -> list[str]:
        async with self.cluster.master.database.read() as session:
            return sorted(await session.scalars(select(CheckpointRow.uuid)))


async def ended_experiment(cluster: Cluster, root: Path) -> Far:
    agent = await cluster.join()
    experiment = await cluster.create(CONFIG % root)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    for steps, uuid in enumerate((FIRST, SECOND), 1):
        store_checkpoint(root, uuid, steps)
        await report_checkpoint(cluster, desired.allocation_id, uuid, steps)
    await agent.exit(desired)
    far = Far(cluster, agent, root, experiment, {desired.container_id})
    await far.reaches("STATE_COMPLETED")
    return far


@pytest.fixture
async def far(cluster: Cluster, tmp_path: Path) -> Far:
    return await ended_experiment(cluster, tmp_path / "elsewhere")


async def test_a_task_of_the_owner_removes_the_files_before_the_rows_go(far: Far) -> None:
    await far.delete()
    desired, order = await far.removal()
    assert desired.spec is not None
    assert (desired.spec.owner, desired.spec.slots) == ("admin", [])
    assert sorted(order["uuids"]) == [FIRST, SECOND]
    assert await far.cluster.state(far.id) == "STATE_DELETING"
    assert (await far.text()).startswith("deleting: a task removes the files of 2 checkpoints first (det task logs ")
    assert gc_checkpoints.remove(order["storage"], order["uuids"], {}) == {}
    await far.report(desired, {}, order["uuids"])
    await far.gone()
    assert list(far.root.iterdir()) == []
    assert await far.rows() == []
    assert (await far.cluster.get("/detent/events", kind="folders_left"))["events"] == []
    # The task's report may be repeated although the rows are gone.
    await far.report(desired, {}, order["uuids"])


async def test_a_failed_removal_is_shown_and_the_next_deletion_removes_the_rest(far: Far) -> None:
    await far.delete()
    desired, order = await far.removal()
    await far.report(desired, {FIRST: "it is held"}, order["uuids"])
    await far.agent.exit(desired)
    await far.reaches("STATE_DELETE_FAILED")
    assert await far.text() == f"delete failed: checkpoint {FIRST}: it is held"
    assert await far.rows() == [FIRST]
    await far.delete()
    again, order = await far.removal()
    assert order["uuids"] == [FIRST]
    await far.report(again, {}, order["uuids"])
    await far.gone()


async def test_a_task_that_is_killed_leaves_the_experiment_in_delete_failed(far: Far) -> None:
    await far.delete()
    desired, _ = await far.removal()
    assert desired.spec is not None
    async with far.cluster.master.database.write() as session:
        await far.cluster.master.tasks.kill(session, await tasks.get(session, desired.spec.task_id), "admin")
    await far.agent.exit(desired, code=137)
    await far.reaches("STATE_DELETE_FAILED")
    assert "the task that removes its files ended before: it was killed" in await far.text()
    assert await far.rows() == [FIRST, SECOND]


async def test_an_experiment_whose_agents_are_gone_says_why_its_deletion_waits(tmp_path: Path) -> None:
    async with open_cluster(tmp_path, agent_reconnect_wait=0.05) as cluster:
        far = await ended_experiment(cluster, tmp_path / "elsewhere")
        await cluster.master.agents.disconnected(far.agent.id)
        await far.delete()

        async def is_explained() -> bool:
            return "it waits: pool 'default' has no agent yet" in await far.text()

        await eventually(is_explained)
        assert await cluster.state(far.id) == "STATE_DELETING"


async def test_bulk_deletion_removes_the_files_too(far: Far) -> None:
    body = {"experimentIds": [far.id]}
    answer = await far.cluster.client.request("DELETE", "/api/v1/projects/1/experiments/delete", json=body)
    assert answer.json()["results"] == [{"id": far.id, "error": ""}]
    desired, order = await far.removal()
    await far.report(desired, {}, order["uuids"])
    await far.gone()


async def test_an_earlier_failure_of_a_checkpoint_does_not_fail_the_deletion(far: Far) -> None:
    answer = await far.cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [FIRST]})
    assert answer.status_code == 200
    desired, order = await far.removal()
    await far.report(desired, {FIRST: "it is held"}, order["uuids"])
    await far.agent.exit(desired)
    await far.delete()
    again, order = await far.removal()
    await far.report(again, {}, order["uuids"])
    await far.gone()


async def test_a_master_that_restarts_goes_on_with_the_deletion(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        far = await ended_experiment(cluster, tmp_path / "elsewhere")
        await far.delete()
        await far.removal()
    async with open_cluster(tmp_path) as cluster:
        again = Far(cluster, await cluster.join(), far.root, far.id, far.known_ids)
        desired, order = await again.removal()
        await again.report(desired, {}, order["uuids"])
        await again.gone()
