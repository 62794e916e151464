"""The end of a completed attempt: its settlement and the next trials follow in the same transaction."""

from typing import Any

import pytest
from sqlalchemy import select
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState, ExitReason, TrialState
from determined_master.db.models import AllocationRow, TrialRow
from determined_master.experiments import hp_search
from determined_master.trials.service import Trials

RANDOM = """
name: one after the other
entrypoint: python3 run.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
max_restarts: 1
searcher: {name: random, metric: loss, max_trials: 3, max_concurrent_trials: 1}
"""


class Calls:
    """Counts the calls of a method, which raises while ``fails``."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: Any, name: str, *, fails: bool = False) -> None:
        self.count = 0
        self.fails = fails
        original = getattr(owner, name)

        def counted(*arguments: Any, **keywords: Any) -> Any:
            self.count += 1
            if self.fails:
                raise RuntimeError("a test's")
            return original(*arguments, **keywords)

        patch.setattr(owner, name, counted)


async def start_search(cluster: Cluster) -> tuple[FakeAgent, DesiredContainer]:
    agent = await cluster.join()
    await cluster.create(RANDOM)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return agent, desired


async def next_one(agent: FakeAgent, former: DesiredContainer) -> DesiredContainer:
    async def placed() -> DesiredContainer | None:
        return next((each for each in await agent.desired() if each.container_id != former.container_id), None)

    desired = await eventually(placed)
    assert desired is not None
    return desired


async def trial_states(cluster: Cluster) -> list[TrialState]:
    async with cluster.master.database.read() as session:
        return [row.state for row in await session.scalars(select(TrialRow).order_by(TrialRow.id))]


async def is_completed(cluster: Cluster, experiment: int = 1) -> bool:
    return await cluster.state(experiment) == "STATE_COMPLETED"


@pytest.mark.parametrize("name", ["settle", "request_slots"])
async def test_an_end_that_cannot_be_settled_is_stored_when_its_agent_reports_it_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, name: str
):
    agent, desired = await start_search(cluster)
    failing = Calls(monkeypatch, Trials, name, fails=True)

    async def is_stored() -> bool:
        await agent.exit(desired)
        async with cluster.master.database.read() as session:
            row = await session.get(AllocationRow, desired.allocation_id)
        return row is not None and row.exit_reason is ExitReason.COMPLETED

    await eventually(is_stored)
    assert failing.count >= 1
    failing.fails = False
    await next_one(agent, desired)
    assert await trial_states(cluster) == [TrialState.COMPLETED, TrialState.ACTIVE]


async def test_a_search_that_fails_is_left_to_its_loop(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent, desired = await start_search(cluster)
    deciding = Calls(monkeypatch, hp_search, "decide", fails=True)
    await agent.exit(desired)
    assert await trial_states(cluster) == [TrialState.COMPLETED]
    deciding.fails = False
    await next_one(agent, desired)
    assert await trial_states(cluster) == [TrialState.COMPLETED, TrialState.ACTIVE]


async def test_a_failed_attempt_in_the_same_report_is_settled_at_once_too(cluster: Cluster):
    agent = await cluster.join(slots=2)
    for _ in range(2):
        await cluster.create(RANDOM)
    containers = sorted(await agent.wait_for_desired(2), key=lambda each: each.allocation_id)
    for each in containers:
        await agent.run(each)
    ends = [
        agent.report_of(each, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))
        for each, code in zip(containers, (3, 0), strict=True)
    ]
    await cluster.master.agents.on_report(agent.id, ends)

    async def both_go_on() -> bool:
        ids = [each.allocation_id for each in await agent.desired()]
        return len(ids) == 2 and not {each.allocation_id for each in containers} & set(ids)

    await eventually(both_go_on)
