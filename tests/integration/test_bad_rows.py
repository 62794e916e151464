"""Rows that cannot be processed: each loop goes on with its other items, also after a restart."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.database_rows import write_rows
from tests.support.makers import add_experiment, add_trial
from tests.support.waiting import eventually

from determined.states import ContainerState, TrialState
from determined_master.agents.service import Agents
from determined_master.allocations import agent_containers_repository, containers
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.service import Allocations
from determined_master.loops import deletion
from determined_master.loops.packing import PackingLoop
from determined_master.metric_series import repository
from determined_master.metrics.store import MetricStore
from determined_master.trials import search_event_repository
from determined_master.trials.service import Trials

pytestmark = pytest.mark.sqlite


async def killed_and_deleted(cluster: Cluster) -> int:
    """Returns an experiment whose trial waited for slots, and that was killed and deleted over HTTP."""
    experiment = await cluster.create()

    async def waits() -> bool:
        task = (await cluster.get("/api/v1/trials/1"))["trial"]["taskId"]
        return bool((await cluster.get(f"/api/v1/tasks/{task}"))["task"]["allocations"])

    await eventually(waits)
    assert (await cluster.post(f"/api/v1/experiments/{experiment}/kill")).status_code == 200
    await delete_experiment(cluster, experiment)
    return experiment


async def delete_experiment(cluster: Cluster, experiment: int) -> None:
    async def gone() -> bool:
        answer = await cluster.client.delete(f"/api/v1/experiments/{experiment}")
        assert answer.status_code in (200, 400, 404), answer.text
        return (await cluster.client.get(f"/api/v1/experiments/{experiment}")).status_code == 404

    await eventually(gone)


async def change_rows(data: Path, statement: str, *values: Any) -> None:
    """Changes rows in a thread: the master may be within a write that only its event loop can end."""
    await asyncio.to_thread(write_rows, data, statement, [values])


async def check_another_completes(cluster: Cluster) -> None:
    """Checks that another experiment gets slots, runs and completes."""
    agent = await cluster.join("other")
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await agent.exit(desired)

    async def completed() -> bool:
        return await cluster.state(experiment) == "STATE_COMPLETED"

    await eventually(completed)


async def test_an_ended_allocation_of_a_deleted_experiment_stops_no_trial(tmp_path: Path):
    """The experiment is deleted right after it was killed, so the deletion overtakes the settlement of its trial."""
    async with open_cluster(tmp_path) as cluster:
        await killed_and_deleted(cluster)
    await change_rows(tmp_path / "data", "UPDATE allocations SET settled = 0")
    async with open_cluster(tmp_path) as cluster:
        await check_another_completes(cluster)
        async with cluster.master.database.read() as session:
            assert await allocation_rows.unsettled(session, of_trials=True) == []


async def test_a_report_for_a_trial_of_a_deleted_experiment_stops_no_search(cluster: Cluster):
    await killed_and_deleted(cluster)
    body = {
        "group": "validation",
        "metrics": {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}},
    }
    assert (await cluster.post("/api/v1/trials/1/metrics", body)).status_code == 404
    await check_another_completes(cluster)


async def test_a_stored_timeout_beyond_every_date_stops_no_deadline(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        agent = await cluster.join(slots=2)
        endless, short = await cluster.create(), await cluster.create(CONFIG + "preemption_timeout: 0\n")
        for desired in await agent.wait_for_desired(2):
            await agent.run(desired)
        await change_rows(
            tmp_path / "data",
            f"UPDATE allocations SET preemption_timeout = {10**18} WHERE task_id LIKE ?",
            f"{endless}.%",
        )
        for experiment in (endless, short):
            await cluster.post(f"/api/v1/experiments/{experiment}/pause")

        async def killed() -> bool:
            return sorted(desired.state for desired in await agent.desired()) == ["running", "stopped"]

        await eventually(killed)


class Spoiled:
    """Makes a method raise for the items for which ``is_bad`` is true, until it is repaired."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: Any, name: str, is_bad: Callable[..., bool]) -> None:
        self.is_repaired = False
        self.count = 0
        original = getattr(owner, name)

        async def raises(*arguments: Any, **keywords: Any) -> Any:
            if not self.is_repaired and is_bad(*arguments, **keywords):
                self.count += 1
                raise RuntimeError("a test's")
            return await original(*arguments, **keywords)

        patch.setattr(owner, name, raises)


SPOILED: dict[str, tuple[Any, str, Callable[..., bool]]] = {
    "settled": (Trials, "settle", lambda _self, _session, _trial, experiment, _ended: experiment.id == 1),
    "requested": (Trials, "request_slots", lambda _self, _session, _trials, experiment: experiment.id == 1),
    "searched": (search_event_repository, "mark_processed", lambda _session, experiment_id, *_: experiment_id == 1),
    "placed": (Allocations, "place", lambda _self, _session, placement: placement.allocation_id.startswith("1.")),
}


@pytest.mark.parametrize("what", SPOILED)
async def test_an_experiment_that_cannot_be_processed_holds_up_no_other(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, what: str
):
    """The experiment goes on once it can be processed. There is one slot for both experiments."""
    spoiled = Spoiled(monkeypatch, *SPOILED[what])
    agent = await cluster.join()
    bad, good = await cluster.create(), await cluster.create()

    async def completed(experiment: int) -> bool:
        for desired in await agent.desired():
            if desired.state == "running":
                await agent.run(desired)
                await agent.exit(desired)
        return await cluster.state(experiment) == "STATE_COMPLETED"

    await eventually(lambda: completed(good))
    assert spoiled.count in (1, 2, 3)  # with back-off, not at each tick
    assert await cluster.state(bad) != "STATE_COMPLETED"
    spoiled.is_repaired = True
    await eventually(lambda: completed(bad))


async def test_an_agent_that_cannot_be_declared_lost_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    spoiled = Spoiled(monkeypatch, Agents, "expire", lambda _self, agent_id: agent_id == "a")
    async with open_cluster(tmp_path, agent_reconnect_wait=0.05) as cluster:
        for agent_id in ("a", "b"):
            await cluster.join(agent_id)
            await cluster.master.agents.disconnected(agent_id)

        async def present() -> str:
            return " ".join(agent["id"] for agent in (await cluster.get("/api/v1/agents"))["agents"]) or "none"

        async def is_gone(agent_id: str) -> bool:
            return agent_id not in (await present()).split()

        await eventually(lambda: is_gone("b"))
        assert spoiled.count > 0
        spoiled.is_repaired = True
        await eventually(lambda: is_gone("a"))


async def test_a_deadline_that_cannot_be_enforced_holds_up_no_other(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    spoiled = Spoiled(monkeypatch, Allocations, "kill", lambda _self, _session, row, **_: row.task_id.startswith("1."))
    agent = await cluster.join(slots=2)
    first, second = [await cluster.create(CONFIG + "preemption_timeout: 0\n") for _ in range(2)]
    for desired in await agent.wait_for_desired(2):
        await agent.run(desired)
    for experiment in (first, second):
        await cluster.post(f"/api/v1/experiments/{experiment}/pause")

    async def killed() -> list[str]:
        return sorted(w.allocation_id[:2] for w in await agent.desired() if w.state == "stopped")

    await eventually(killed)
    assert await killed() == ["2."]
    spoiled.is_repaired = True

    async def both_are_killed() -> bool:
        return await killed() == ["1.", "2."]

    await eventually(both_are_killed)


async def test_an_experiment_that_cannot_be_deleted_holds_up_no_other(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    spoiled = Spoiled(monkeypatch, deletion.indexer, "drop", lambda _session, experiment_id: experiment_id == 1)
    first, second = [await cluster.create(activate=False) for _ in range(2)]
    for experiment in (first, second):
        await cluster.post(f"/api/v1/experiments/{experiment}/kill")

    async def deletable() -> bool:
        return {await cluster.state(first), await cluster.state(second)} == {"STATE_CANCELED"}

    await eventually(deletable)
    assert (await cluster.client.delete(f"/api/v1/experiments/{first}")).status_code == 200
    await delete_experiment(cluster, second)
    assert await cluster.state(first) == "STATE_DELETING"
    spoiled.is_repaired = True
    await delete_experiment(cluster, first)


async def test_a_reported_container_that_cannot_be_stored_holds_up_no_other(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await cluster.join(slots=2)
    await cluster.create()
    await cluster.create()
    bad, good = await agent.wait_for_desired(2)
    Spoiled(
        monkeypatch,
        containers,
        "observe",
        lambda *arguments: bad.container_id in [t.container_id for t in arguments[4]],
    )
    reports = [agent.report_of(desired, ContainerState.RUNNING) for desired in (bad, good)]
    await cluster.master.agents.on_report(agent.id, reports)
    async with cluster.master.database.read() as session:
        states = {c.id: c.state for c, _ in await agent_containers_repository.live_on_agent(session, agent.id)}
    assert states == {bad.container_id: ContainerState.ASSIGNED, good.container_id: ContainerState.RUNNING}


async def test_an_allocation_that_cannot_be_read_is_left_alone_and_others_are_desired(cluster: Cluster):
    agent = await cluster.join(slots=2)
    bad, good = await cluster.create(), await cluster.create()
    await agent.wait_for_desired(2)
    await change_rows(
        cluster.master.settings.data, "UPDATE allocations SET spec = '[]' WHERE task_id LIKE ?", f"{bad}.%"
    )
    placements = {desired.allocation_id.partition(".")[0]: desired for desired in await agent.desired()}
    assert placements[str(bad)].spec is None
    assert placements[str(bad)].state == "running"
    assert placements[str(good)].spec is not None


async def test_a_trial_whose_reports_cannot_be_packed_holds_up_no_other(cluster: Cluster):
    async with cluster.master.database.write() as session:
        experiment = await add_experiment(session)
        # Trials that are live: the master's own packer waits for more reports of them.
        bad, good = [(await add_trial(session, experiment, state=TrialState.ACTIVE)).id for _ in range(2)]
    for trial, metrics in ((bad, "[1]"), (good, '{"loss": 1.0}')):
        await change_rows(
            cluster.master.settings.data,
            'INSERT INTO metrics (trial_id, run_id, "group", reported_at, steps, metrics, archived)'
            " VALUES (?, 1, 'training', 1, 1, ?, 0)",
            trial,
            metrics,
        )
    packing = PackingLoop(cluster.master.database, lambda: 0, least=1, least_at_end=1)
    waits = [await packing.tick() for _ in range(3)]
    async with cluster.master.database.read() as session:
        series = await repository.series_of(session, [bad, good], [("training", "loss")])
    assert [row.trial_id for row in series] == [good]
    assert waits[-1] is not None, "the bad one is tried again"
    assert waits[-1] > 0


async def test_the_group_writer_goes_on_after_a_group_that_it_cannot_answer(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    body: dict[str, Any] = {
        "group": "training",
        "metrics": {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1.0}}},
    }

    def raises(*_: Any) -> set[str]:
        raise RuntimeError("a test's")

    with monkeypatch.context() as broken:
        broken.setattr(MetricStore, "topics", raises)
        assert (
            await cluster.post("/api/v1/trials/1/metrics", body, **cluster.as_task(desired.allocation_id))
        ).status_code == 500
    body["metrics"]["stepsCompleted"] = 2
    assert (
        await cluster.post("/api/v1/trials/1/metrics", body, **cluster.as_task(desired.allocation_id))
    ).status_code == 200
