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

    def __init__(self, one: Cluster) -> None:
        self.one = one
        self.told: Changes = set()
        one.master.notifications.observers.append(
            lambda topics: self.told.update(c for topic in topics if (c := change_of(topic)) is not None)
        )

    async def of(self, action: Awaitable[Any]) -> Changes:
        """What is told while this is done, not later."""
        self.told.clear()
        answer = await action
        if answer is not None:
            assert answer.status_code == 200, answer.text
        return set(self.told)

    async def running(self) -> tuple[FakeAgent, DesiredContainer, dict[str, str]]:
        agent = await self.one.join(slots=2)
        await self.one.create()
        wish = (await agent.wished())[0]
        await agent.run(wish)
        return agent, wish, self.one.as_task(wish.allocation_id)

    async def stands_at(self, state: str) -> None:
        async def stands() -> bool:
            return await self.one.state(1) == f"STATE_{state}"

        await eventually(stands)


@pytest.fixture
async def walk(one: Cluster) -> Walk:
    return Walk(one)


async def test_changes_of_a_paused_experiment_are_published(walk: Walk):
    one = walk.one
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post("/api/v1/experiments", {"config": CONFIG}))
    assert EXPERIMENT in await walk.of(one.client.put(f"{X}/labels/a"))
    assert EXPERIMENT in await walk.of(one.client.delete(f"{X}/labels/a"))
    bodies: list[dict[str, Any]] = [{"name": "n"}, {"description": "d"}, {"notes": "n"}, {"labels": ["b"]}]
    bodies += [{"resources": {"priority": 3}}, {"checkpointStorage": {"saveTrialBest": 2}}]
    for body in bodies:
        assert {EXPERIMENT, EVENTS} <= await walk.of(one.client.patch(X, json=body)), body
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post(f"{X}/kill"))
    await walk.stands_at("CANCELED")
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post(f"{X}/archive"))
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post(f"{X}/unarchive"))
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.client.delete(X))

    async def gone() -> bool:
        return ("deleted", "1") in walk.told

    await eventually(gone)


async def test_changes_of_an_attempt_are_published_from_request_to_end(walk: Walk):
    """By what follows without anybody's request: the queue, the placement, the container, the end."""
    one = walk.one
    await one.create()

    async def told() -> Changes | None:
        return walk.told if {EXPERIMENT, CLUSTER} <= walk.told else None

    await eventually(told)
    allocation = await eventually(lambda: _allocation(one))
    assert "waiting" in allocation
    walk.told.clear()
    agent = await one.join()
    wish = (await agent.wished())[0]
    assert {EXPERIMENT, CLUSTER, EVENTS} <= walk.told
    for state in (ContainerState.PULLING, ContainerState.STARTING, ContainerState.RUNNING):
        assert {EXPERIMENT, CLUSTER} <= await walk.of(agent.say(wish, state)), state
    ready = one.post(f"/api/v1/allocations/{wish.allocation_id}/ready")
    assert {EXPERIMENT, EVENTS} <= await walk.of(ready)
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post(f"{X}/pause"))
    acknowledged = one.post(f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption")
    assert {EXPERIMENT, EVENTS} <= await walk.of(acknowledged)
    assert {EXPERIMENT, CLUSTER, EVENTS} <= await walk.of(agent.exit(wish))
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post(f"{X}/activate"))
    again = (await agent.wished())[0]
    await agent.run(again)
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post("/api/v1/trials/1/kill"))
    assert {EXPERIMENT, CLUSTER} <= await walk.of(
        agent.say(again, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    )
    await walk.stands_at("CANCELED")


async def test_a_container_of_several_publishes_its_own_change(walk: Walk):
    """Its allocation stays as it is, but what is known of the attempt has grown."""
    agents = [await walk.one.join("one"), await walk.one.join("two")]
    await walk.one.create(CONFIG + "resources: {slots_per_trial: 2}\n")
    wishes = [(await agent.wished())[0] for agent in agents]
    for agent, wish in zip(agents, wishes, strict=True):
        await agent.run(wish) if agent is agents[1] else await agent.say(wish, ContainerState.RUNNING)
    exited = ContainerExit(kind="exited", code=0)
    assert EXPERIMENT in await walk.of(agents[0].say(wishes[0], ContainerState.TERMINATED, exited))


async def test_the_reason_of_a_wait_is_published(walk: Walk):
    agent, _, _ = await walk.running()
    walk.told.clear()
    await walk.one.create(CONFIG + "resources: {slots_per_trial: 2}\n")

    async def said() -> bool:
        rows = (await walk.one.get("/detent/trials/2/progress"))["waiting"] or ""
        return "scheduler" not in rows and bool(rows)

    await eventually(said)
    assert {("experiment", "2"), CLUSTER} <= walk.told
    assert agent.id == "one"


async def test_reports_of_a_task_are_published(walk: Walk):
    one = walk.one
    _, wish, task = await walk.running()
    name = wish.allocation_id.rpartition(".")[0]
    report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}}
    body = {"group": "training", "metrics": report}
    assert METRICS in await walk.of(one.post("/api/v1/trials/1/metrics", body, **task))
    assert METRICS in await walk.of(one.post("/api/v1/trials/1/progress", {"progress": 0.3}, **task))
    assert EXPERIMENT in await walk.of(one.post("/api/v1/runs/1/metadata", {"metadata": {"a": 1}}, **task))
    assert EXPERIMENT in await walk.of(one.post("/api/v1/trials/1/runner/metadata", {"state": "s"}, **task))
    lines = {"logs": [{"taskId": name, "log": "x"}]}
    assert ("logs", name) in await walk.of(one.post("/api/v1/task/logs", lines, **task))
    checkpoint = {
        "uuid": checkpoint_uuid(1),
        "taskId": name,
        "metadata": {"steps_completed": 1},
        "resources": {"f": 1, "g": 1},
    }
    assert {EXPERIMENT, EVENTS} <= await walk.of(one.post("/api/v1/checkpoints", checkpoint, **task))
    less = {"checkpoints": [{"uuid": checkpoint_uuid(1), "resources": {"resources": {"f": 1}}}]}
    assert EXPERIMENT in await walk.of(one.client.patch("/api/v1/checkpoints", json=less))
    gone = one.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(1)]})
    assert EXPERIMENT in await walk.of(gone)
    invalid = {"reason": "EXITED_REASON_INVALID_HP"}
    assert EXPERIMENT in await walk.of(one.post("/api/v1/trials/1/early_exit", invalid, **task))


async def test_changes_of_agents_and_slots_are_published(walk: Walk):
    one, agents = walk.one, walk.one.master.agents
    a = "/api/v1/agents/one"
    steps: list[Callable[[], Awaitable[Any]]] = [
        lambda: one.post(f"{a}/disable", {"drain": True}),
        lambda: one.post(f"{a}/enable"),
        lambda: one.post(f"{a}/slots/0/disable", {"drain": True}),
        lambda: one.post(f"{a}/slots/0/enable"),
        lambda: agents.disconnected("one"),
        lambda: agents._lose("one"),
    ]
    await one.join(slots=2)
    assert {CLUSTER, EVENTS} <= walk.told
    for number, step in enumerate(steps):
        assert {CLUSTER, EVENTS} <= await walk.of(step()), number


async def _allocation(one: Cluster) -> dict[str, Any] | None:
    answer: dict[str, Any] = await one.get("/detent/trials/1/progress")
    return answer if answer["waiting"] else None
