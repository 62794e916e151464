"""An experiment's life over HTTP: created, placed, paused, activated, canceled, killed, deleted."""

from collections import Counter
from unittest.mock import AsyncMock

import pytest
from tests.support.checkpoints import checkpoint_uuid
from tests.support.cluster import Cluster, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState
from determined_master.api.queries import trials as trial_queries
from determined_master.logs import policy_match_repository

GRID = """
name: grid
entrypoint: python3 run.py
searcher: {name: grid, metric: loss}
hyperparameters:
  a: {type: categorical, vals: [1, 2, 3, 4, 5, 6]}
"""


async def reaches(cluster: Cluster, experiment_id: int, *states: str) -> None:
    async def in_state() -> bool:
        return (await cluster.state(experiment_id)) in states

    await eventually(in_state)


async def test_an_experiment_is_placed_runs_and_completes(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    assert desired.spec is not None
    assert desired.spec.slots == [0]
    await agent.run(desired)
    assert await cluster.state(experiment) == "STATE_RUNNING"
    await agent.exit(desired)
    await reaches(cluster, experiment, "STATE_COMPLETED")
    assert (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["progress"] == 1.0


async def test_a_trial_that_waits_says_why_and_starts_when_an_agent_joins(cluster: Cluster):
    experiment = await cluster.create()

    async def why() -> bool:
        return "no agent" in ((await cluster.get("/detent/trials/1/progress"))["waiting"] or "")

    await eventually(why)
    assert await cluster.state(experiment) == "STATE_QUEUED"
    agent = await cluster.join()
    await agent.wait_for_desired()


async def test_more_slots_than_any_agent_has_is_refused_with_the_reason(cluster: Cluster):
    await cluster.join(slots=2)
    config = "name: x\nentrypoint: a\nsearcher: {name: single, metric: m}\nhyperparameters: {}\n"
    answer = await cluster.post("/api/v1/experiments", {"config": config + "resources: {slots_per_trial: 3}"})
    assert answer.status_code == 400
    (diagnostic,) = answer.json()["diagnostics"]
    assert (diagnostic["code"], diagnostic["line"], diagnostic["column"]) == ("E210", 5, 30)
    assert diagnostic["message"] == (
        "request unfulfillable: a trial needs 3 slots, but the only agent of pool 'default' has 2; "
        "lower resources.slots_per_trial to 2 or less, or add agents"
    )


async def test_pausing_preempts_a_ready_trial_and_activating_resumes_from_its_checkpoint(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    headers = cluster.as_task(desired.allocation_id)
    await cluster.post(f"/api/v1/experiments/{experiment}/pause")
    poll = await cluster.client.get(
        f"/api/v1/allocations/{desired.allocation_id}/signals/preemption",
        params={"timeout_seconds": 30},
        headers=headers,
    )
    assert poll.json() == {"preempt": True}
    assert [w.state for w in await agent.desired()] == ["running"]
    await cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption", **headers)
    checkpoint = {
        "uuid": checkpoint_uuid(1),
        "taskId": desired.spec.task_id,
        "metadata": {"steps_completed": 7},
        "resources": {"f": "3"},
    }
    assert (await cluster.post("/api/v1/checkpoints", checkpoint, **headers)).status_code == 200
    await agent.exit(desired)

    async def free() -> bool:
        return not await agent.desired()

    await eventually(free)
    assert await cluster.state(experiment) == "STATE_PAUSED"
    assert (await cluster.post("/api/v1/me", **headers)).status_code in (401, 404, 405)
    await cluster.post(f"/api/v1/experiments/{experiment}/activate")
    again = (await agent.wait_for_desired())[0]
    assert again.spec.environment["DET_LATEST_CHECKPOINT"] == checkpoint_uuid(1)
    assert again.spec.environment["DET_STEPS_COMPLETED"] == "7"
    assert again.spec.environment["DET_TRIAL_RUN_ID"] == "2"


async def test_pausing_a_trial_that_is_not_ready_kills_it_without_a_restart(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.send_report(desired, ContainerState.STARTING)
    await cluster.post(f"/api/v1/experiments/{experiment}/pause")
    assert [w.state for w in await agent.desired()] == ["stopped"]
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    assert await cluster.state(experiment) == "STATE_PAUSED"
    await cluster.post(f"/api/v1/experiments/{experiment}/activate")
    assert (await agent.wait_for_desired())[0].spec.environment["DET_TRIAL_RUN_ID"] == "2"
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["restarts"] == 0


async def test_pausing_a_grid_frees_its_slots_and_activating_resumes_its_trials(cluster: Cluster):
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(GRID)
    first = await agent.wait_for_desired(2)
    for desired in first:
        await agent.run(desired)
    await cluster.post(f"/api/v1/experiments/{experiment}/pause")
    other = await cluster.create()
    for desired in first:
        await cluster.post(
            f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption",
            **cluster.as_task(desired.allocation_id),
        )
        await agent.exit(desired)
    waiting = (await agent.wait_for_desired())[0]
    await agent.run(waiting)
    assert await cluster.state(other) == "STATE_RUNNING"
    assert len(await agent.desired()) == 1
    await agent.exit(waiting)
    await cluster.post(f"/api/v1/experiments/{experiment}/activate")
    await agent.wait_for_desired(2)
    trials = (await cluster.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
    assert Counter(trial["state"] for trial in trials) == {"STATE_STARTING": 2, "STATE_QUEUED": 4}


async def test_failures_restart_until_max_restarts(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create(
        "name: x\nentrypoint: a\nsearcher: {name: single, metric: m}\nhyperparameters: {}\nmax_restarts: 1"
    )
    for run in ("1", "2"):
        desired = (await agent.wait_for_desired())[0]
        assert desired.spec.environment["DET_TRIAL_RUN_ID"] == run
        await agent.run(desired)
        await agent.exit(desired, code=3)
    await reaches(cluster, experiment, "STATE_ERROR")
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["restarts"] == 1
    assert (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["progress"] == 0.0


async def test_cancel_asks_for_a_checkpoint_and_kill_does_not(cluster: Cluster):
    agent = await cluster.join(slots=2)
    canceled, killed = await cluster.create(), await cluster.create()
    containers = {w.spec.environment["DET_EXPERIMENT_ID"]: w for w in await agent.wait_for_desired(2)}
    for desired in containers.values():
        await agent.run(desired)
    await cluster.post(f"/api/v1/experiments/{canceled}/cancel")
    await cluster.post(f"/api/v1/experiments/{killed}/kill")
    states = {w.allocation_id: w.state for w in await agent.desired()}
    assert states[containers[str(canceled)].allocation_id] == "running"
    assert states[containers[str(killed)].allocation_id] == "stopped"
    await cluster.post(
        f"/api/v1/allocations/{containers[str(canceled)].allocation_id}/signals/ack_preemption",
        **cluster.as_task(containers[str(canceled)].allocation_id),
    )
    await agent.exit(containers[str(canceled)])
    await agent.send_report(containers[str(killed)], ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await reaches(cluster, canceled, "STATE_CANCELED")
    await reaches(cluster, killed, "STATE_CANCELED")
    for experiment in (canceled, killed):
        assert (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["progress"] == 0.0


async def test_a_completed_experiment_can_be_deleted_and_a_running_one_cannot(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    running = await cluster.client.delete(f"/api/v1/experiments/{experiment}")
    assert running.status_code == 400
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await agent.exit(desired)
    await reaches(cluster, experiment, "STATE_COMPLETED")
    assert (await cluster.client.delete(f"/api/v1/experiments/{experiment}")).status_code == 200

    async def gone() -> bool:
        return (await cluster.client.get(f"/api/v1/experiments/{experiment}")).status_code == 404

    await eventually(gone)
    assert (await cluster.get("/api/v1/experiments"))["experiments"] == []


async def test_an_invalid_configuration_is_refused_with_all_its_lines_and_not_stored(cluster: Cluster):
    answer = await cluster.post(
        "/api/v1/experiments", {"config": "name: x\nsearcher: {name: single, metrik: m}\nfoo: 1\n"}
    )
    assert answer.status_code == 400
    text = answer.json()["error"]["error"]
    assert "config.yaml:2" in text
    assert "config.yaml:3:1" in text
    assert {d["line"] for d in answer.json()["diagnostics"]} >= {2, 3}
    assert (await cluster.get("/api/v1/experiments"))["experiments"] == []


async def test_a_lost_agent_frees_its_trial_without_a_restart_and_fences_it(tmp_path):
    async with open_cluster(tmp_path, agent_reconnect_wait=0.05) as cluster:
        agent = await cluster.join()
        await cluster.create()
        desired = (await agent.wait_for_desired())[0]
        await agent.run(desired)
        headers = cluster.as_task(desired.allocation_id)
        await cluster.master.agents.disconnected("one")
        other = await cluster.join("two")
        again = (await other.wait_for_desired())[0]
        assert again.spec.environment["DET_TRIAL_RUN_ID"] == "2"
        assert (await cluster.get("/api/v1/trials/1"))["trial"]["restarts"] == 0
        late = await cluster.post(
            "/api/v1/trials/1/metrics",
            {
                "group": "training",
                "metrics": {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"a": 1}}},
            },
            **headers,
        )
        assert late.status_code == 401
        assert "fenced" in late.json()["error"]["error"]
        assert await agent.desired() == []


async def test_a_list_of_all_trials_asks_for_a_part_of_them_at_a_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    await cluster.create(GRID.replace(", 6]", "]"))

    async def listed() -> list[int]:
        return [each["id"] for each in (await cluster.get("/api/v1/experiments/1/trials"))["trials"]]

    async def complete() -> bool:
        return len(await listed()) == 5

    await eventually(complete)
    monkeypatch.setattr(trial_queries, "MAX_TRIALS_A_STATEMENT", 2)
    names = AsyncMock(wraps=policy_match_repository.newest_names)
    monkeypatch.setattr(policy_match_repository, "newest_names", names)
    assert await listed() == [1, 2, 3, 4, 5]
    assert [len(call.args[1]) for call in names.await_args_list] == [2, 2, 1]
