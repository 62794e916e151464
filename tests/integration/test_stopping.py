"""Requests that wait when the master stops, and attempts that do not stop in time."""

import asyncio
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState
from determined_master import notifications
from determined_master.loops import trials


async def test_a_rendezvous_that_waits_is_answered_with_503_when_the_master_stops(cluster: Cluster):
    """Any other status would end the task."""
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    path = f"/api/v1/allocations/{desired.allocation_id}/resources/{desired.container_id}/rendezvous"
    request = asyncio.create_task(cluster.client.get(path, headers=cluster.as_task(desired.allocation_id)))

    async def waits() -> bool:
        return cluster.master.notifications.has_subscribers(notifications.allocation(desired.allocation_id))

    await eventually(waits)
    cluster.master.notifications.close()
    answer = await request
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == 14


async def test_a_trial_that_reported_invalid_hyperparameters_and_does_not_exit_is_killed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trials, "INVALID_GRACE_SECONDS", 0.1)
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    body = {"reason": "EXITED_REASON_INVALID_HP"}
    answer = await cluster.post("/api/v1/trials/1/early_exit", body, **cluster.as_task(desired.allocation_id))
    assert answer.status_code == 200

    async def stopped() -> bool:
        return [w.state for w in await agent.desired()] == ["stopped"]

    await eventually(stopped)
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def ended() -> bool:
        return bool((await cluster.get("/api/v1/experiments/1"))["experiment"]["state"] == "STATE_CANCELED")

    await eventually(ended)  # it was the only trial: nothing was trained
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["progress"] == 0
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["state"] == "STATE_COMPLETED"
    assert (await cluster.get("/detent/trials/1/progress"))["progress"] == 0


async def test_the_log_names_the_preemption_timeout_of_a_preempted_attempt(cluster: Cluster):
    agent = await cluster.join()
    config = CONFIG + "preemption_timeout: 90\n"
    experiment = await cluster.create(config)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    for _ in range(2):  # requested twice, logged once
        await cluster.post(f"/api/v1/experiments/{experiment}/pause", {})
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    lines = [line for line in answer.text.splitlines() if "preemption was requested" in line]
    assert len(lines) == 1
    assert "preemption_timeout: 90 s" in lines[0]


async def test_a_trial_that_does_not_save_in_time_is_killed_and_resumes_later(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create(CONFIG + "preemption_timeout: 0\n")
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    await cluster.post(f"/api/v1/experiments/{experiment}/pause", {})

    async def is_to_stop() -> bool:
        return [each.state for each in await agent.desired()] == ["stopped"]

    await eventually(is_to_stop)
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def attempt() -> dict[str, Any] | None:
        (newest,) = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
        return newest if newest["endedAt"] else None

    assert (await eventually(attempt))["message"] == (
        "paused by admin; killed because it still ran after its preemption_timeout (0 s)"
    )
    await cluster.post(f"/api/v1/experiments/{experiment}/activate", {})

    async def follows() -> bool:
        return [each.allocation_id for each in await agent.desired()] == [desired.allocation_id.removesuffix("1") + "2"]

    await eventually(follows)
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["restarts"] == 0
