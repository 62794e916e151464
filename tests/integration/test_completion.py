"""What follows the end of a completed attempt, in the transaction that ends it."""

from typing import Any

import pytest
from sqlalchemy import select
from tests.integration.test_statements import transactions
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState, ExitReason, TrialState
from determined_master.db.models import AllocationRow, TrialRow
from determined_master.experiments import search
from determined_master.experiments.search import Search
from determined_master.loops.trials import TrialLoop
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
        whole = getattr(owner, name)

        def noted(*given: Any, **named: Any) -> Any:
            self.count += 1
            if self.fails:
                raise RuntimeError("a test's")
            return whole(*given, **named)

        patch.setattr(owner, name, noted)


async def runs(one: Cluster) -> tuple[FakeAgent, DesiredContainer]:
    agent = await one.join()
    await one.create(RANDOM)
    (wish,) = await agent.wished()
    await agent.run(wish)
    return agent, wish


async def next_one(agent: FakeAgent, former: DesiredContainer) -> DesiredContainer:
    async def wished() -> DesiredContainer | None:
        return next((each for each in await agent.wish() if each.container_id != former.container_id), None)

    wish = await eventually(wished)
    assert wish is not None
    return wish


async def trials(one: Cluster) -> list[TrialState]:
    async with one.master.database.read() as session:
        return [row.state for row in await session.scalars(select(TrialRow).order_by(TrialRow.id))]


async def ended(one: Cluster, experiment: int = 1) -> bool:
    return await one.state(experiment) == "STATE_COMPLETED"


async def test_a_search_goes_through_its_trials_without_the_loops(one: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent, wish = await runs(one)
    loops = [Calls(monkeypatch, TrialLoop, name) for name in ("_settle_one", "_request_some")]
    loops.append(Calls(monkeypatch, Search, "advance"))
    for _ in range(2):
        await agent.exit(wish)
        wish = await next_one(agent, wish)
        await agent.run(wish)
    await agent.exit(wish)
    assert await ended(one)
    assert await trials(one) == [TrialState.COMPLETED] * 3
    assert [each.count for each in loops] == [0, 0, 0]


async def test_the_end_of_an_attempt_and_what_follows_are_one_transaction(one: Cluster):
    agent, wish = await runs(one)
    with transactions(one.master.database) as found:
        await agent.exit(wish)
        await next_one(agent, wish)
    (ending,) = [each for each in found if any("UPDATE slot_holds" in statement for statement in each)]
    changes = ("UPDATE trials", "INSERT INTO search_facts", "INSERT INTO trials", "INSERT INTO allocations")
    assert [each for each in changes if not any(statement.startswith(each) for statement in ending)] == []
    assert any("searcher_cursor=" in each for each in ending)
    of_another = [each for each in found if each is not ending and any("INSERT INTO" in one_of for one_of in each)]
    assert all(any("slot_holds" in statement for statement in each) for each in of_another), of_another


async def test_an_attempt_that_fails_is_left_to_the_loops(one: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent, wish = await runs(one)
    settled = Calls(monkeypatch, TrialLoop, "_settle_one")
    await agent.exit(wish, code=3)
    wish = await next_one(agent, wish)
    assert wish.allocation_id.endswith(".2")
    assert settled.count == 1


@pytest.mark.parametrize("name", ["settle", "request_slots"])
async def test_an_end_for_which_this_fails_is_stored_when_its_agent_reports_it_again(
    one: Cluster, monkeypatch: pytest.MonkeyPatch, name: str
):
    agent, wish = await runs(one)
    failing = Calls(monkeypatch, Trials, name, fails=True)

    async def is_stored() -> bool:
        await agent.exit(wish)
        async with one.master.database.read() as session:
            row = await session.get(AllocationRow, wish.allocation_id)
        return row is not None and row.exit_reason is ExitReason.COMPLETED

    await eventually(is_stored)
    assert failing.count >= 1
    failing.fails = False
    await next_one(agent, wish)
    assert await trials(one) == [TrialState.COMPLETED, TrialState.ACTIVE]


async def test_a_search_that_fails_is_left_to_its_loop(one: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent, wish = await runs(one)
    deciding = Calls(monkeypatch, search, "decide", fails=True)
    await agent.exit(wish)
    assert await trials(one) == [TrialState.COMPLETED]
    deciding.fails = False
    await next_one(agent, wish)
    assert await trials(one) == [TrialState.COMPLETED, TrialState.ACTIVE]


async def test_a_failed_attempt_in_the_same_report_is_settled_at_once_too(one: Cluster):
    agent = await one.join(slots=2)
    for _ in range(2):
        await one.create(RANDOM)
    wishes = sorted(await agent.wished(2), key=lambda each: each.allocation_id)
    for each in wishes:
        await agent.run(each)
    ends = [
        agent.truth(each, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))
        for each, code in zip(wishes, (3, 0), strict=True)
    ]
    await one.master.agents.on_report(agent.id, ends)

    async def both_go_on() -> bool:
        found = [each.allocation_id for each in await agent.wish()]
        return len(found) == 2 and not {each.allocation_id for each in wishes} & set(found)

    await eventually(both_go_on)
