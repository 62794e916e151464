"""Deletion of experiments: outside the event loop, in bounded transactions, and with visible errors."""

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkpoints import store_checkpoint
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from determined_master.loops import deletion


async def complete_experiment(cluster: Cluster, checkpoints: int = 1) -> tuple[int, list[Path]]:
    """Returns an experiment that has completed, and the folders of its checkpoints."""
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    assert desired.spec is not None
    await agent.run(desired)
    folders = []
    for step in range(checkpoints):
        name = str(uuid.uuid4())
        folder = store_checkpoint(cluster.master.settings.data / "checkpoints", name)
        body = {
            "uuid": name,
            "taskId": desired.spec.task_id,
            "metadata": {"steps_completed": step},
            "resources": {"model": "7"},
        }
        assert (
            await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
        ).status_code == 200
        folders.append(folder)
    await agent.exit(desired)
    await reaches(cluster, experiment, "STATE_COMPLETED")
    return experiment, folders


async def reaches(cluster: Cluster, experiment: int, state: str) -> None:
    async def in_state() -> bool:
        return await cluster.state(experiment) == state

    await eventually(in_state)


async def delete(cluster: Cluster, experiment: int) -> None:
    assert (await cluster.client.delete(f"/api/v1/experiments/{experiment}")).status_code == 200


async def is_gone(cluster: Cluster, experiment: int) -> bool:
    return (await cluster.client.get(f"/api/v1/experiments/{experiment}")).status_code == 404


async def test_a_checkpoint_that_cannot_be_removed_is_reported_and_removed_by_the_next_deletion(cluster: Cluster):
    experiment, (good, bad) = await complete_experiment(cluster, checkpoints=2)
    obstacle = bad.with_name(f"{bad.name}.deleted")
    obstacle.write_text("in the way")
    await delete(cluster, experiment)
    await reaches(cluster, experiment, "STATE_DELETE_FAILED")
    status = await cluster.get(f"/detent/experiments/{experiment}/status")
    assert status["text"].startswith(f"delete failed: checkpoint {bad.name}: ")
    assert "Not a directory" in status["text"]
    events = await cluster.get("/detent/events")
    assert any("could not be deleted: checkpoint" in event["text"] for event in events["events"])
    assert not good.exists()
    left = (await cluster.get(f"/api/v1/experiments/{experiment}/checkpoints"))["checkpoints"]
    assert [checkpoint["uuid"] for checkpoint in left] == [bad.name]
    obstacle.unlink()
    await delete(cluster, experiment)
    await eventually(lambda: is_gone(cluster, experiment))


async def test_checkpoint_folders_are_removed_outside_the_event_loop(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    experiment, _ = await complete_experiment(cluster)
    is_removing, may_go_on, others_were_served = threading.Event(), threading.Event(), []

    def slow(*_: Any) -> None:
        is_removing.set()
        others_were_served.append(may_go_on.wait(5))

    monkeypatch.setattr(deletion, "remove", slow)
    await delete(cluster, experiment)

    async def removing() -> bool:
        return is_removing.is_set()

    await eventually(removing)
    assert await cluster.state(experiment) == "STATE_DELETING"
    may_go_on.set()
    await eventually(lambda: is_gone(cluster, experiment))
    assert others_were_served == [True]
