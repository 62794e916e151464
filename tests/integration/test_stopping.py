"""A master that stops answers who waits in a way that lets him ask the next one."""

import asyncio
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState
from determined_master import notifications
from determined_master.loops import trials


async def test_a_rendezvous_is_asked_again(cluster: Cluster):
    """Anything but 503 would end the task."""
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    path = f"/api/v1/allocations/{desired.allocation_id}/resources/{desired.container_id}/rendezvous"
    asking = asyncio.create_task(cluster.client.get(path, headers=cluster.as_task(desired.allocation_id)))

    async def waits() -> bool:
        return bool(cluster.master.notifications._subscribers.get(notifications.allocation(desired.allocation_id)))

    await eventually(waits)
    cluster.master.notifications.close()
    answer = await asking
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == 14


async def test_who_reported_invalid_hyperparameters_and_stays_is_killed(
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


async def test_the_log_says_when_an_attempt_that_does_not_leave_is_killed(cluster: Cluster):
    agent = await cluster.join()
    config = CONFIG + "preemption_timeout: 90\n"
    experiment = await cluster.create(config)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    for _ in range(2):  # asked twice, said once
        await cluster.post(f"/api/v1/experiments/{experiment}/pause", {})
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    said = [line for line in answer.text.splitlines() if "preemption was requested" in line]
    assert len(said) == 1
    assert "preemption_timeout: 90 s" in said[0]


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
        (found,) = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
        return found if found["endedAt"] else None

    assert (await eventually(attempt))["message"] == (
        "paused by admin; killed because it still ran after its preemption_timeout (0 s)"
    )
    await cluster.post(f"/api/v1/experiments/{experiment}/activate", {})

    async def follows() -> bool:
        return [each.allocation_id for each in await agent.desired()] == [desired.allocation_id.removesuffix("1") + "2"]

    await eventually(follows)
    assert (await cluster.get("/api/v1/trials/1"))["trial"]["restarts"] == 0
