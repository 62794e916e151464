"""Preemption by priority, by fair shares and by max_slots."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer

URGENT = CONFIG + "resources: {priority: 5}\n"
PREEMPTING = {"scheduler": {"preemption": True}}


async def is_preempted(cluster: Cluster, desired: DesiredContainer) -> bool:
    path = f"/api/v1/allocations/{desired.allocation_id}/signals/preemption"
    return bool((await cluster.get(path, timeout_seconds=0))["preempt"])


async def leave(cluster: Cluster, agent: FakeAgent, desired: DesiredContainer) -> None:
    """Acknowledges the preemption of a trial and exits, as a trial that was asked to save and leave."""
    assert await is_preempted(cluster, desired)
    await cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption", {})
    await agent.exit(desired)


async def run_attempt(agent: FakeAgent, experiment: int, run: int = 1) -> DesiredContainer:
    """Waits for the container of an experiment's attempt, and runs it."""

    async def placed() -> DesiredContainer | None:
        for each in await agent.desired():
            if each.allocation_id.startswith(f"{experiment}.") and each.allocation_id.endswith(f".{run}"):
                return each
        return None

    desired = await eventually(placed)
    await agent.run(desired)
    return desired


async def queue_texts(cluster: Cluster) -> list[str]:
    entries = (await cluster.get("/detent/cluster/overview"))["queue"]
    return [str(entry["waiting"]) for entry in entries if entry["waiting"]]


async def test_a_trial_is_preempted_by_one_of_better_priority_and_runs_again_afterwards(tmp_path: Path):
    async with open_cluster(tmp_path, **PREEMPTING) as cluster:
        agent = await cluster.join()
        first = await cluster.create()
        desired = await run_attempt(agent, first)
        urgent = await cluster.create(URGENT)
        await eventually(lambda: is_preempted(cluster, desired))
        await eventually(lambda: _some_wait_with(cluster, "starts when trial 1 of experiment 1 has saved and left"))
        (trial,) = (await cluster.get(f"/api/v1/experiments/{first}/trials"))["trials"]
        log = (await cluster.client.get(f"/api/v1/tasks/{trial['taskIds'][0]}/logs", params={"limit": 50})).text
        assert "which has a better priority (5)" in log
        await leave(cluster, agent, desired)
        better = await run_attempt(agent, urgent)
        await agent.exit(better)
        await run_attempt(agent, first, run=2)
        assert (await cluster.get(f"/api/v1/trials/{trial['id']}"))["trial"]["restarts"] == 0


async def _some_wait_with(cluster: Cluster, text: str) -> bool:
    return any(text in each for each in await queue_texts(cluster))


async def test_no_second_trial_is_preempted_while_the_first_is_leaving(tmp_path: Path):
    async with open_cluster(tmp_path, **PREEMPTING) as cluster:
        agent = await cluster.join(slots=2)
        containers = [await run_attempt(agent, await cluster.create()) for _ in range(2)]
        await cluster.create(URGENT)
        await eventually(lambda: is_preempted(cluster, containers[1]))
        await cluster.create()  # changes the queue, so that the scheduler decides again
        await eventually(lambda: _some_wait_with(cluster, "0 of 2 free"))
        assert not await is_preempted(cluster, containers[0])


async def test_without_preemption_a_trial_of_better_priority_waits(cluster: Cluster):
    agent = await cluster.join()
    desired = await run_attempt(agent, await cluster.create())
    await cluster.create(URGENT)
    await eventually(lambda: _some_wait_with(cluster, "needs 1 slot; 0 of 1 free"))
    assert not await is_preempted(cluster, desired)


async def test_commands_are_not_preempted(tmp_path: Path):
    async with open_cluster(tmp_path, **PREEMPTING) as cluster:
        agent = await cluster.join()
        config: dict[str, Any] = {"entrypoint": ["sleep", "9"], "resources": {"slots": 1}}
        assert (await cluster.post("/api/v1/commands", {"config": config})).status_code == 200
        await agent.run((await agent.wait_for_desired())[0])
        await cluster.create(URGENT)
        await eventually(lambda: _some_wait_with(cluster, "needs 1 slot; 0 of 1 free"))


@pytest.mark.parametrize("kind", ["priority", "fair_share"])
async def test_a_job_holds_no_more_than_its_max_slots(tmp_path: Path, kind: str):
    config = (
        "name: wide\nentrypoint: python3 run.py\nsearcher: {name: random, metric: loss, max_trials: 4}\n"
        "hyperparameters: {}\nresources: {max_slots: 2}\n"
    )
    async with open_cluster(tmp_path, scheduler={"type": kind}) as cluster:
        agent = await cluster.join(slots=4)
        experiment = await cluster.create(config)
        await agent.wait_for_desired(2)
        await eventually(lambda: _some_wait_with(cluster, "max_slots 2 of its job leaves 0"))
        assert len(await agent.desired()) == 2
        path = f"/api/v1/experiments/{experiment}"
        assert (await cluster.client.patch(path, json={"resources": {"max_slots": 3}})).status_code == 200
        await agent.wait_for_desired(3)


@pytest.mark.parametrize("kind", ["priority", "fair_share"])
async def test_trials_above_a_lowered_max_slots_save_and_wait(tmp_path: Path, kind: str):
    config = (
        "name: wide\nentrypoint: python3 run.py\nsearcher: {name: random, metric: loss, max_trials: 4}\n"
        "hyperparameters: {}\n"
    )
    async with open_cluster(tmp_path, scheduler={"type": kind}) as cluster:
        agent = await cluster.join(slots=4)
        experiment = await cluster.create(config)
        containers = await agent.wait_for_desired(4)
        for desired in containers:
            await agent.run(desired)
        path = f"/api/v1/experiments/{experiment}"
        assert (await cluster.client.patch(path, json={"resources": {"max_slots": 1}})).status_code == 200

        async def are_preempted() -> list[DesiredContainer] | None:
            preempted = []
            for desired in containers:
                where = f"/api/v1/allocations/{desired.allocation_id}/signals/preemption"
                answer = await cluster.client.get(where, params={"timeout_seconds": 0})
                preempted += [desired] if answer.json()["preempt"] else []
            return preempted if len(preempted) >= 3 else None

        leaving = await eventually(are_preempted)
        assert len(leaving) == 3
        for desired in leaving:
            signals = f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption"
            assert (await cluster.post(signals, {}, **cluster.as_task(desired.allocation_id))).status_code == 200
            await agent.exit(desired)
        await eventually(lambda: _some_wait_with(cluster, "max_slots 1 of its job leaves 0"))
        assert [each.allocation_id for each in await agent.desired()] == [
            desired.allocation_id for desired in containers if desired not in leaving
        ]
        trials = (await cluster.get(f"{path}/trials"))["trials"]
        assert sorted(each["state"] for each in trials) == [*["STATE_QUEUED"] * 3, "STATE_RUNNING"]
        assert {each["restarts"] for each in trials} == {0}


async def test_fair_share_preempts_trials_of_a_job_above_its_share(tmp_path: Path):
    config = (
        "name: wide\nentrypoint: python3 run.py\nsearcher: {name: random, metric: loss, max_trials: 4}\n"
        "hyperparameters: {}\n"
    )
    async with open_cluster(tmp_path, scheduler={"type": "fair_share"}) as cluster:
        agent = await cluster.join(slots=4)
        await cluster.create(config)
        containers = await agent.wait_for_desired(4)
        for desired in containers:
            await agent.run(desired)
        await cluster.create(config)

        async def two_are_asked() -> bool:
            return sum([await is_preempted(cluster, desired) for desired in containers]) == 2

        await eventually(two_are_asked)
