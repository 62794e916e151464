"""Outputs of trials over HTTP: reported by a task, given to the next attempt, apart from the checkpoints of states."""

from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer

CONFIG = """
name: writes
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
max_restarts: 2
outputs: [runs]
checkpoint_storage: {save_experiment_best: 0, save_trial_best: 0, save_trial_latest: 1}
"""
LATEST = "DETENT_LATEST_OUTPUTS"
LISTS = (
    "/api/v1/experiments/1/checkpoints",
    "/api/v1/trials/1/checkpoints",
    "/detent/experiments/1/checkpoints",
    "/detent/checkpoints",
)


async def keep(cluster: Cluster, desired: DesiredContainer, number: int, **more: Any) -> None:
    """Stores outputs as a task does and reports them."""
    uuid = checkpoint_uuid(number)
    store_checkpoint(cluster.master.settings.data / "checkpoints", uuid, 0, weights=b"abc")
    body = {
        "uuid": uuid,
        "role": "outputs",
        "metadata": {"steps_completed": 0, "outputs": ["runs"]},
        "resources": {"runs/": 0, "runs/a": 3, "metadata.json": 2},
        **more,
    }
    answer = await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
    assert answer.status_code == 200, answer.text


async def first_attempt(cluster: Cluster) -> tuple[FakeAgent, DesiredContainer]:
    agent = await cluster.join()
    await cluster.create(CONFIG)
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    return agent, desired


async def next_attempt(agent: FakeAgent, before: DesiredContainer, code: int) -> DesiredContainer:
    await agent.exit(before, code)

    async def follows() -> DesiredContainer | None:
        others = [each for each in await agent.desired() if each.container_id != before.container_id]
        return others[0] if others else None

    desired = await eventually(follows)
    await agent.run(desired)
    return desired


def stored(cluster: Cluster) -> set[str]:
    return {folder.name for folder in (cluster.master.settings.data / "checkpoints").iterdir()}


async def test_the_next_attempt_gets_the_newest_outputs_and_the_older_ones_are_removed(cluster: Cluster):
    agent, first = await first_attempt(cluster)
    assert first.spec is not None
    assert LATEST not in first.spec.environment
    await keep(cluster, first, 1)
    second = await next_attempt(agent, first, 1)
    assert second.spec is not None
    assert second.spec.environment[LATEST] == checkpoint_uuid(1)
    assert "DET_LATEST_CHECKPOINT" not in second.spec.environment
    await keep(cluster, second, 2)
    await eventually(lambda: stored(cluster) == {checkpoint_uuid(2)})
    found = await cluster.get("/detent/experiments/1/outputs")
    assert [each["uuid"] for each in found["outputs"]] == [checkpoint_uuid(2)]
    third = await next_attempt(agent, second, 1)
    assert third.spec is not None
    assert third.spec.environment[LATEST] == checkpoint_uuid(2)


async def test_outputs_are_in_no_list_of_checkpoints_and_no_latest_checkpoint(cluster: Cluster):
    _, desired = await first_attempt(cluster)
    await report_checkpoint(cluster, desired.allocation_id, checkpoint_uuid(1), steps=5)
    await keep(cluster, desired, 2)
    for path in LISTS:
        found = await cluster.get(path)
        assert [each["uuid"] for each in found["checkpoints"]] == [checkpoint_uuid(1)], path
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert (trial["checkpointCount"], trial["totalCheckpointSize"]) == (1, "8")
    experiment = (await cluster.get("/api/v1/experiments/1"))["experiment"]
    assert (experiment["checkpointCount"], experiment["checkpointSize"]) == (1, "8")
    workloads = (await cluster.get("/api/v1/trials/1/workloads"))["workloads"]
    assert [each["checkpoint"]["uuid"] for each in workloads if each.get("checkpoint")] == [checkpoint_uuid(1)]
    marks = (await cluster.get("/detent/experiments/1/timeline"))["marks"]
    assert [mark["kind"] for mark in marks].count("checkpoint") == 1
    one = (await cluster.get(f"/api/v1/checkpoints/{checkpoint_uuid(2)}"))["checkpoint"]
    assert (one["role"], one["state"]) == ("outputs", "STATE_COMPLETED")


async def test_the_list_of_outputs_has_one_entry_for_each_trial_in_pages(cluster: Cluster):
    agent = await cluster.join(slots=2)
    grid = CONFIG.replace("name: single", "name: grid")
    await cluster.create(grid + "hyperparameters: {x: {type: categorical, vals: [1, 2]}}\n")
    for number, desired in enumerate(await agent.wait_for_desired(2), 1):
        await agent.run(desired)
        await keep(cluster, desired, number)
    first = await cluster.get("/detent/experiments/1/outputs", limit=1)
    second = await cluster.get("/detent/experiments/1/outputs", limit=1, before=first["next"])
    assert second["next"] is None
    [newest], [oldest] = first["outputs"], second["outputs"]
    assert [newest["uuid"], oldest["uuid"]] == [checkpoint_uuid(2), checkpoint_uuid(1)]
    assert (newest["size"], newest["files"], newest["folders"]) == (5, 1, ["runs"])
    of_one = await cluster.get("/detent/experiments/1/outputs", trialId=oldest["trialId"])
    assert of_one["outputs"] == [oldest]
    for path, query in [("/detent/experiments/9/outputs", {}), ("/detent/experiments/1/outputs", {"trialId": "9"})]:
        assert (await cluster.client.get(path, params=query)).status_code == 404


async def test_the_policy_for_states_keeps_one_state_and_the_outputs(cluster: Cluster):
    agent, desired = await first_attempt(cluster)
    root = cluster.master.settings.data / "checkpoints"
    for steps in (1, 2):
        store_checkpoint(root, checkpoint_uuid(steps), steps, weights=b"abc")
        await report_checkpoint(cluster, desired.allocation_id, checkpoint_uuid(steps), steps)
    await keep(cluster, desired, 3)
    preview = await cluster.get("/experiments/1/preview_gc", save_trial_latest=0)
    assert {each["UUID"] for each in preview["checkpoints"]} == {checkpoint_uuid(1), checkpoint_uuid(2)}
    await agent.exit(desired)
    await eventually(lambda: stored(cluster) == {checkpoint_uuid(2), checkpoint_uuid(3)})


async def test_outputs_are_downloaded_and_deleted_by_their_id_and_with_their_experiment(cluster: Cluster):
    agent, desired = await first_attempt(cluster)
    await keep(cluster, desired, 1)
    await keep(cluster, desired, 2)
    answer = await cluster.client.get(f"/checkpoints/{checkpoint_uuid(2)}")
    assert answer.status_code == 200
    gone = await cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(2)]})
    assert gone.status_code == 200
    assert (await cluster.get("/detent/experiments/1/outputs"))["outputs"] == []
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert (trial["checkpointCount"], trial["totalCheckpointSize"]) == (0, "0")
    await keep(cluster, desired, 3)
    await agent.exit(desired)

    async def is_completed() -> bool:
        return await cluster.state(1) == "STATE_COMPLETED"

    await eventually(is_completed)
    assert (await cluster.client.delete("/api/v1/experiments/1")).status_code == 200
    await eventually(lambda: not stored(cluster))


async def test_a_repeated_report_of_outputs_changes_nothing(cluster: Cluster):
    _, desired = await first_attempt(cluster)
    await keep(cluster, desired, 1)
    body = {"uuid": checkpoint_uuid(1), "role": "outputs", "metadata": {}, "resources": {"runs/a": 3}}
    answer = await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
    assert answer.status_code == 200
    [found] = (await cluster.get("/detent/experiments/1/outputs"))["outputs"]
    assert found["size"] == 5


@pytest.mark.parametrize("role", ["", "OUTPUTS", "weights", 3])
async def test_an_unknown_role_is_refused(cluster: Cluster, role: object):
    _, desired = await first_attempt(cluster)
    body = {"uuid": checkpoint_uuid(1), "role": role, "metadata": {"steps_completed": 1}}
    answer = await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            f"source_checkpoint_uuid: {checkpoint_uuid(1)}",
            "holds outputs of a script, from which no training can start",
        ),
        ("source_trial_id: 1", "trial 1 has no checkpoint to start from"),
    ],
)
async def test_no_training_starts_from_outputs(cluster: Cluster, source: str, text: str):
    _, desired = await first_attempt(cluster)
    await keep(cluster, desired, 1)
    config = CONFIG.replace("metric: loss", f"metric: loss, {source}")
    answer = await cluster.post("/api/v1/experiments", {"config": config})
    assert answer.status_code == 400
    assert text in answer.text


@pytest.mark.parametrize("wrong", [None, 5, "runs", {}, 10**400], ids=["null", "5", "text", "object", "huge"])
async def test_outputs_whose_metadata_is_strange_are_listed(cluster: Cluster, wrong: Any):
    _, desired = await first_attempt(cluster)
    await keep(cluster, desired, 1, metadata={"steps_completed": 0, "outputs": wrong, "files": wrong})
    (listed,) = (await cluster.get("/detent/experiments/1/outputs"))["outputs"]
    assert listed["folders"] == []
    assert listed["files"] == 1
