"""Published changes: every operation that changes something visible publishes it with its commit."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.api.change_feed import change_of

Changes = set[tuple[str, str]]
EXPERIMENT, METRICS, CLUSTER, EVENTS = ("experiment", "1"), ("metrics", "1"), ("cluster", ""), ("events", "")
X = "/api/v1/experiments/1"


class ChangeRecorder:
    """Records the changes that the notifications of a cluster publish to pages."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.published: Changes = set()
        cluster.master.notifications.observers.append(
            lambda topics: self.published.update(c for topic in topics if (c := change_of(topic)) is not None)
        )

    async def of(self, action: Awaitable[Any]) -> Changes:
        """Returns the changes that are published while the action runs."""
        self.published.clear()
        answer = await action
        if answer is not None:
            assert answer.status_code == 200, answer.text
        return set(self.published)

    async def running(self) -> tuple[FakeAgent, DesiredContainer, dict[str, str]]:
        agent = await self.cluster.join(slots=2)
        await self.cluster.create()
        desired = (await agent.wait_for_desired())[0]
        await agent.run(desired)
        return agent, desired, self.cluster.as_task(desired.allocation_id)

    async def reaches(self, state: str) -> None:
        async def in_state() -> bool:
            return await self.cluster.state(1) == f"STATE_{state}"

        await eventually(in_state)


@pytest.fixture
async def recorder(cluster: Cluster) -> ChangeRecorder:
    return ChangeRecorder(cluster)


async def test_changes_of_a_paused_experiment_are_published(recorder: ChangeRecorder):
    cluster = recorder.cluster
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post("/api/v1/experiments", {"config": CONFIG}))
    assert EXPERIMENT in await recorder.of(cluster.client.put(f"{X}/labels/a"))
    assert EXPERIMENT in await recorder.of(cluster.client.delete(f"{X}/labels/a"))
    bodies: list[dict[str, Any]] = [{"name": "n"}, {"description": "d"}, {"notes": "n"}, {"labels": ["b"]}]
    bodies += [{"resources": {"priority": 3}}, {"checkpointStorage": {"saveTrialBest": 2}}]
    for body in bodies:
        assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.client.patch(X, json=body)), body
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post(f"{X}/kill"))
    await recorder.reaches("CANCELED")
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post(f"{X}/archive"))
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post(f"{X}/unarchive"))
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.client.delete(X))

    async def gone() -> bool:
        return ("deleted", "1") in recorder.published

    await eventually(gone)


async def test_changes_of_an_attempt_are_published_from_request_to_end(recorder: ChangeRecorder):
    """Includes changes that no request causes: queue, placement, container states and end."""
    cluster = recorder.cluster
    await cluster.create()

    async def published() -> Changes | None:
        return recorder.published if {EXPERIMENT, CLUSTER} <= recorder.published else None

    await eventually(published)
    allocation = await eventually(lambda: _allocation(cluster))
    assert "waiting" in allocation
    recorder.published.clear()
    agent = await cluster.join()
    desired = (await agent.wait_for_desired())[0]
    assert {EXPERIMENT, CLUSTER, EVENTS} <= recorder.published
    for state in (ContainerState.PULLING, ContainerState.STARTING, ContainerState.RUNNING):
        assert {EXPERIMENT, CLUSTER} <= await recorder.of(agent.send_report(desired, state)), state
    ready = cluster.post(f"/api/v1/allocations/{desired.allocation_id}/ready")
    assert {EXPERIMENT, EVENTS} <= await recorder.of(ready)
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post(f"{X}/pause"))
    acknowledged = cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption")
    assert {EXPERIMENT, EVENTS} <= await recorder.of(acknowledged)
    assert {EXPERIMENT, CLUSTER, EVENTS} <= await recorder.of(agent.exit(desired))
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post(f"{X}/activate"))
    again = (await agent.wait_for_desired())[0]
    await agent.run(again)
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post("/api/v1/trials/1/kill"))
    assert {EXPERIMENT, CLUSTER} <= await recorder.of(
        agent.send_report(again, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    )
    await recorder.reaches("CANCELED")


async def test_each_container_of_a_gang_publishes_its_own_change(recorder: ChangeRecorder):
    """The state of the allocation does not change, but its attempt does."""
    agents = [await recorder.cluster.join("one"), await recorder.cluster.join("two")]
    await recorder.cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")
    containers = [(await agent.wait_for_desired())[0] for agent in agents]
    for agent, desired in zip(agents, containers, strict=True):
        await agent.run(desired) if agent is agents[1] else await agent.send_report(desired, ContainerState.RUNNING)
    exited = ContainerExit(kind="exited", code=0)
    assert EXPERIMENT in await recorder.of(agents[0].send_report(containers[0], ContainerState.TERMINATED, exited))


async def test_the_reason_of_a_wait_is_published(recorder: ChangeRecorder):
    agent, _, _ = await recorder.running()
    recorder.published.clear()
    await recorder.cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")

    async def reason_is_known() -> bool:
        reason = (await recorder.cluster.get("/detent/trials/2/progress"))["waiting"] or ""
        return "scheduler" not in reason and bool(reason)

    await eventually(reason_is_known)
    assert {("experiment", "2"), CLUSTER} <= recorder.published
    assert agent.id == "one"


async def test_reports_of_a_task_are_published(recorder: ChangeRecorder):
    cluster = recorder.cluster
    _, desired, task = await recorder.running()
    name = desired.allocation_id.rpartition(".")[0]
    report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}}
    body = {"group": "training", "metrics": report}
    assert METRICS in await recorder.of(cluster.post("/api/v1/trials/1/metrics", body, **task))
    assert METRICS in await recorder.of(cluster.post("/api/v1/trials/1/progress", {"progress": 0.3}, **task))
    assert EXPERIMENT in await recorder.of(cluster.post("/api/v1/runs/1/metadata", {"metadata": {"a": 1}}, **task))
    assert EXPERIMENT in await recorder.of(cluster.post("/api/v1/trials/1/runner/metadata", {"state": "s"}, **task))
    lines = {"logs": [{"taskId": name, "log": "x"}]}
    assert ("logs", name) in await recorder.of(cluster.post("/api/v1/task/logs", lines, **task))
    checkpoint = {
        "uuid": checkpoint_uuid(1),
        "taskId": name,
        "metadata": {"steps_completed": 1},
        "resources": {"f": 1, "g": 1},
    }
    assert {EXPERIMENT, EVENTS} <= await recorder.of(cluster.post("/api/v1/checkpoints", checkpoint, **task))
    less = {"checkpoints": [{"uuid": checkpoint_uuid(1), "resources": {"resources": {"f": 1}}}]}
    assert EXPERIMENT in await recorder.of(cluster.client.patch("/api/v1/checkpoints", json=less))
    gone = cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(1)]})
    assert EXPERIMENT in await recorder.of(gone)
    invalid = {"reason": "EXITED_REASON_INVALID_HP"}
    assert EXPERIMENT in await recorder.of(cluster.post("/api/v1/trials/1/early_exit", invalid, **task))


async def test_changes_of_agents_and_slots_are_published(recorder: ChangeRecorder):
    cluster, agents = recorder.cluster, recorder.cluster.master.agents
    a = "/api/v1/agents/one"
    steps: list[Callable[[], Awaitable[Any]]] = [
        lambda: cluster.post(f"{a}/disable", {"drain": True}),
        lambda: cluster.post(f"{a}/enable"),
        lambda: cluster.post(f"{a}/slots/0/disable", {"drain": True}),
        lambda: cluster.post(f"{a}/slots/0/enable"),
        lambda: agents.disconnected("one"),
        lambda: agents.expire("one"),
    ]
    await cluster.join(slots=2)
    assert {CLUSTER, EVENTS} <= recorder.published
    for number, step in enumerate(steps):
        assert {CLUSTER, EVENTS} <= await recorder.of(step()), number


async def _allocation(cluster: Cluster) -> dict[str, Any] | None:
    answer: dict[str, Any] = await cluster.get("/detent/trials/1/progress")
    return answer if answer["waiting"] else None
