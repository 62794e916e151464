"""Every place that changes something visible says so: each is walked, and its change is seen with its commit."""

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


class Walk:
    """A cluster of one agent, and what its notifications would tell a page."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.published: Changes = set()
        cluster.master.notifications.observers.append(
            lambda topics: self.published.update(c for topic in topics if (c := change_of(topic)) is not None)
        )

    async def of(self, action: Awaitable[Any]) -> Changes:
        """Returns the changes that are published while this is done, not later."""
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

    async def stands_at(self, state: str) -> None:
        async def stands() -> bool:
            return await self.cluster.state(1) == f"STATE_{state}"

        await eventually(stands)


@pytest.fixture
async def walk(cluster: Cluster) -> Walk:
    return Walk(cluster)


async def test_changes_of_a_paused_experiment_are_published(walk: Walk):
    cluster = walk.cluster
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post("/api/v1/experiments", {"config": CONFIG}))
    assert EXPERIMENT in await walk.of(cluster.client.put(f"{X}/labels/a"))
    assert EXPERIMENT in await walk.of(cluster.client.delete(f"{X}/labels/a"))
    bodies: list[dict[str, Any]] = [{"name": "n"}, {"description": "d"}, {"notes": "n"}, {"labels": ["b"]}]
    bodies += [{"resources": {"priority": 3}}, {"checkpointStorage": {"saveTrialBest": 2}}]
    for body in bodies:
        assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.client.patch(X, json=body)), body
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post(f"{X}/kill"))
    await walk.stands_at("CANCELED")
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post(f"{X}/archive"))
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post(f"{X}/unarchive"))
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.client.delete(X))

    async def gone() -> bool:
        return ("deleted", "1") in walk.published

    await eventually(gone)


async def test_changes_of_an_attempt_are_published_from_request_to_end(walk: Walk):
    """By what follows without anybody's request: the queue, the placement, the container, the end."""
    cluster = walk.cluster
    await cluster.create()

    async def published() -> Changes | None:
        return walk.published if {EXPERIMENT, CLUSTER} <= walk.published else None

    await eventually(published)
    allocation = await eventually(lambda: _allocation(cluster))
    assert "waiting" in allocation
    walk.published.clear()
    agent = await cluster.join()
    desired = (await agent.wait_for_desired())[0]
    assert {EXPERIMENT, CLUSTER, EVENTS} <= walk.published
    for state in (ContainerState.PULLING, ContainerState.STARTING, ContainerState.RUNNING):
        assert {EXPERIMENT, CLUSTER} <= await walk.of(agent.send_report(desired, state)), state
    ready = cluster.post(f"/api/v1/allocations/{desired.allocation_id}/ready")
    assert {EXPERIMENT, EVENTS} <= await walk.of(ready)
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post(f"{X}/pause"))
    acknowledged = cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption")
    assert {EXPERIMENT, EVENTS} <= await walk.of(acknowledged)
    assert {EXPERIMENT, CLUSTER, EVENTS} <= await walk.of(agent.exit(desired))
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post(f"{X}/activate"))
    again = (await agent.wait_for_desired())[0]
    await agent.run(again)
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post("/api/v1/trials/1/kill"))
    assert {EXPERIMENT, CLUSTER} <= await walk.of(
        agent.send_report(again, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    )
    await walk.stands_at("CANCELED")


async def test_a_container_of_several_publishes_its_own_change(walk: Walk):
    """Its allocation stays as it is, but what is known of the attempt has grown."""
    agents = [await walk.cluster.join("one"), await walk.cluster.join("two")]
    await walk.cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")
    containers = [(await agent.wait_for_desired())[0] for agent in agents]
    for agent, desired in zip(agents, containers, strict=True):
        await agent.run(desired) if agent is agents[1] else await agent.send_report(desired, ContainerState.RUNNING)
    exited = ContainerExit(kind="exited", code=0)
    assert EXPERIMENT in await walk.of(agents[0].say(containers[0], ContainerState.TERMINATED, exited))


async def test_the_reason_of_a_wait_is_published(walk: Walk):
    agent, _, _ = await walk.running()
    walk.published.clear()
    await walk.cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")

    async def said() -> bool:
        rows = (await walk.cluster.get("/detent/trials/2/progress"))["waiting"] or ""
        return "scheduler" not in rows and bool(rows)

    await eventually(said)
    assert {("experiment", "2"), CLUSTER} <= walk.published
    assert agent.id == "one"


async def test_reports_of_a_task_are_published(walk: Walk):
    cluster = walk.cluster
    _, desired, task = await walk.running()
    name = desired.allocation_id.rpartition(".")[0]
    report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}}
    body = {"group": "training", "metrics": report}
    assert METRICS in await walk.of(cluster.post("/api/v1/trials/1/metrics", body, **task))
    assert METRICS in await walk.of(cluster.post("/api/v1/trials/1/progress", {"progress": 0.3}, **task))
    assert EXPERIMENT in await walk.of(cluster.post("/api/v1/runs/1/metadata", {"metadata": {"a": 1}}, **task))
    assert EXPERIMENT in await walk.of(cluster.post("/api/v1/trials/1/runner/metadata", {"state": "s"}, **task))
    lines = {"logs": [{"taskId": name, "log": "x"}]}
    assert ("logs", name) in await walk.of(cluster.post("/api/v1/task/logs", lines, **task))
    checkpoint = {
        "uuid": checkpoint_uuid(1),
        "taskId": name,
        "metadata": {"steps_completed": 1},
        "resources": {"f": 1, "g": 1},
    }
    assert {EXPERIMENT, EVENTS} <= await walk.of(cluster.post("/api/v1/checkpoints", checkpoint, **task))
    less = {"checkpoints": [{"uuid": checkpoint_uuid(1), "resources": {"resources": {"f": 1}}}]}
    assert EXPERIMENT in await walk.of(cluster.client.patch("/api/v1/checkpoints", json=less))
    gone = cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(1)]})
    assert EXPERIMENT in await walk.of(gone)
    invalid = {"reason": "EXITED_REASON_INVALID_HP"}
    assert EXPERIMENT in await walk.of(cluster.post("/api/v1/trials/1/early_exit", invalid, **task))


async def test_changes_of_agents_and_slots_are_published(walk: Walk):
    cluster, agents = walk.cluster, walk.cluster.master.agents
    a = "/api/v1/agents/one"
    steps: list[Callable[[], Awaitable[Any]]] = [
        lambda: cluster.post(f"{a}/disable", {"drain": True}),
        lambda: cluster.post(f"{a}/enable"),
        lambda: cluster.post(f"{a}/slots/0/disable", {"drain": True}),
        lambda: cluster.post(f"{a}/slots/0/enable"),
        lambda: agents.disconnected("one"),
        lambda: agents._lose("one"),
    ]
    await cluster.join(slots=2)
    assert {CLUSTER, EVENTS} <= walk.published
    for number, step in enumerate(steps):
        assert {CLUSTER, EVENTS} <= await walk.of(step()), number


async def _allocation(cluster: Cluster) -> dict[str, Any] | None:
    answer: dict[str, Any] = await cluster.get("/detent/trials/1/progress")
    return answer if answer["waiting"] else None
