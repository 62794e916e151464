"""Preemption by priority and by shares: who is asked to leave, for whom, and what follows."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent, cluster
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer

URGENT = CONFIG + "resources: {priority: 5}\n"
PREEMPTING = {"scheduler": {"preemption": True}}


async def is_asked(one: Cluster, wish: DesiredContainer) -> bool:
    path = f"/api/v1/allocations/{wish.allocation_id}/signals/preemption"
    return bool((await one.get(path, timeout_seconds=0))["preempt"])


async def leave(one: Cluster, agent: FakeAgent, wish: DesiredContainer) -> None:
    """Does what a trial does that was asked to save and leave."""
    assert await is_asked(one, wish)
    await one.post(f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption", {})
    await agent.exit(wish)


async def started(agent: FakeAgent, experiment: int, run: int = 1) -> DesiredContainer:
    """Waits for the container of an experiment's attempt, and lets it run."""

    async def wished() -> DesiredContainer | None:
        for each in await agent.wish():
            if each.allocation_id.startswith(f"{experiment}.") and each.allocation_id.endswith(f".{run}"):
                return each
        return None

    wish = await eventually(wished)
    await agent.run(wish)
    return wish


async def queue_texts(one: Cluster) -> list[str]:
    entries = (await one.get("/detent/cluster/overview"))["queue"]
    return [str(entry["waiting"]) for entry in entries if entry["waiting"]]


async def test_a_trial_leaves_for_a_better_one_and_comes_back(tmp_path: Path):
    async with cluster(tmp_path, **PREEMPTING) as one:
        agent = await one.join()
        first = await one.create()
        wish = await started(agent, first)
        urgent = await one.create(URGENT)
        await eventually(lambda: is_asked(one, wish))
        await eventually(lambda: _says(one, "starts when trial 1 of experiment 1 has saved and left"))
        (trial,) = (await one.get(f"/api/v1/experiments/{first}/trials"))["trials"]
        log = (await one.client.get(f"/api/v1/tasks/{trial['taskIds'][0]}/logs", params={"limit": 50})).text
        assert "which has a better priority (5)" in log
        await leave(one, agent, wish)
        better = await started(agent, urgent)
        await agent.exit(better)
        await started(agent, first, run=2)
        assert (await one.get(f"/api/v1/trials/{trial['id']}"))["trial"]["restarts"] == 0


async def _says(one: Cluster, text: str) -> bool:
    return any(text in each for each in await queue_texts(one))


async def test_no_second_one_is_asked_while_the_first_is_leaving(tmp_path: Path):
    async with cluster(tmp_path, **PREEMPTING) as one:
        agent = await one.join(slots=2)
        wishes = [await started(agent, await one.create()) for _ in range(2)]
        await one.create(URGENT)
        await eventually(lambda: is_asked(one, wishes[1]))
        await one.create()  # changes the queue, so that the scheduler decides again
        await eventually(lambda: _says(one, "0 of 2 free"))
        assert not await is_asked(one, wishes[0])


async def test_without_preemption_a_better_one_waits(one: Cluster):
    agent = await one.join()
    wish = await started(agent, await one.create())
    await one.create(URGENT)
    await eventually(lambda: _says(one, "needs 1 slot; 0 of 1 free"))
    assert not await is_asked(one, wish)


async def test_commands_are_not_preempted(tmp_path: Path):
    async with cluster(tmp_path, **PREEMPTING) as one:
        agent = await one.join()
        config: dict[str, Any] = {"entrypoint": ["sleep", "9"], "resources": {"slots": 1}}
        assert (await one.post("/api/v1/commands", {"config": config})).status_code == 200
        await agent.run((await agent.wished())[0])
        await one.create(URGENT)
        await eventually(lambda: _says(one, "needs 1 slot; 0 of 1 free"))


@pytest.mark.parametrize("kind", ["priority", "fair_share"])
async def test_a_job_holds_no_more_than_its_max_slots(tmp_path: Path, kind: str):
    config = (
        "name: wide\nentrypoint: python3 run.py\nsearcher: {name: random, metric: loss, max_trials: 4}\n"
        "hyperparameters: {}\nresources: {max_slots: 2}\n"
    )
    async with cluster(tmp_path, scheduler={"type": kind}) as one:
        agent = await one.join(slots=4)
        experiment = await one.create(config)
        await agent.wished(2)
        await eventually(lambda: _says(one, "max_slots 2 of its job leaves 0"))
        assert len(await agent.wish()) == 2
        path = f"/api/v1/experiments/{experiment}"
        assert (await one.client.patch(path, json={"resources": {"max_slots": 3}})).status_code == 200
        await agent.wished(3)


@pytest.mark.parametrize("kind", ["priority", "fair_share"])
async def test_trials_above_a_lowered_max_slots_save_and_wait(tmp_path: Path, kind: str):
    config = (
        "name: wide\nentrypoint: python3 run.py\nsearcher: {name: random, metric: loss, max_trials: 4}\n"
        "hyperparameters: {}\n"
    )
    async with cluster(tmp_path, scheduler={"type": kind}) as one:
        agent = await one.join(slots=4)
        experiment = await one.create(config)
        wishes = await agent.wished(4)
        for wish in wishes:
            await agent.run(wish)
        path = f"/api/v1/experiments/{experiment}"
        assert (await one.client.patch(path, json={"resources": {"max_slots": 1}})).status_code == 200

        async def asked() -> list[DesiredContainer] | None:
            found = []
            for wish in wishes:
                where = f"/api/v1/allocations/{wish.allocation_id}/signals/preemption"
                answer = await one.client.get(where, params={"timeout_seconds": 0})
                found += [wish] if answer.json()["preempt"] else []
            return found if len(found) >= 3 else None

        leaving = await eventually(asked)
        assert len(leaving) == 3
        for wish in leaving:
            signals = f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption"
            assert (await one.post(signals, {}, **one.as_task(wish.allocation_id))).status_code == 200
            await agent.exit(wish)
        await eventually(lambda: _says(one, "max_slots 1 of its job leaves 0"))
        assert [each.allocation_id for each in await agent.wish()] == [
            wish.allocation_id for wish in wishes if wish not in leaving
        ]
        trials = (await one.get(f"{path}/trials"))["trials"]
        assert sorted(each["state"] for each in trials) == [*["STATE_QUEUED"] * 3, "STATE_RUNNING"]
        assert {each["restarts"] for each in trials} == {0}


async def test_shares_take_slots_from_who_has_more_than_its_own(tmp_path: Path):
    config = (
        "name: wide\nentrypoint: python3 run.py\nsearcher: {name: random, metric: loss, max_trials: 4}\n"
        "hyperparameters: {}\n"
    )
    async with cluster(tmp_path, scheduler={"type": "fair_share"}) as one:
        agent = await one.join(slots=4)
        await one.create(config)
        wishes = await agent.wished(4)
        for wish in wishes:
            await agent.run(wish)
        await one.create(config)

        async def two_are_asked() -> bool:
            return sum([await is_asked(one, wish) for wish in wishes]) == 2

        await eventually(two_are_asked)
