"""Contract tests of every resource manager: the promises of ``determined_master.resource_managers.manager``."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually

from determined.states import AllocationState, ExitReason
from determined_master.allocations import repository
from determined_master.db.models import AllocationRow
from determined_master.resource_managers.manager import ResourceManager
from determined_master.scheduling.view import Constraints, PoolView, TaskGroup


@dataclass
class Managed:
    """A pool with two slots on one machine, and its manager."""

    cluster: Cluster
    manager: ResourceManager
    agent: FakeAgent
    pool: str = "default"

    async def submit(self, slots: int = 1) -> str:
        """Submits a trial; returns its allocation."""
        experiment = await self.cluster.create(CONFIG + f"resources: {{slots_per_trial: {slots}}}\n")

        async def requested() -> str | None:
            async with self.cluster.master.database.read() as session:
                live = await repository.live_without_spec(session)
            return next((row.id for row in live if row.id.startswith(f"{experiment}.")), None)

        return str(await eventually(requested))

    async def row(self, allocation_id: str) -> AllocationRow:
        async with self.cluster.master.database.read() as session:
            return await repository.get(session, allocation_id)

    async def reaches(self, allocation_id: str, *states: AllocationState) -> AllocationRow:
        async def in_state() -> AllocationRow | None:
            row = await self.row(allocation_id)
            return row if row.state in states else None

        row = await eventually(in_state)
        assert row is not None
        return row

    async def starts(self, allocation_id: str) -> None:
        """Waits until the allocation is placed, and runs it."""
        await self.reaches(allocation_id, AllocationState.ASSIGNED)
        for desired in await self.agent.desired():
            if desired.allocation_id == allocation_id:
                await self.agent.run(desired)

    async def ends(self, allocation_id: str) -> None:
        for desired in await self.agent.desired():
            if desired.allocation_id == allocation_id:
                await self.agent.exit(desired)


@asynccontextmanager
async def agents(folder: Path) -> AsyncIterator[Managed]:
    async with open_cluster(folder) as cluster:
        agent = await cluster.join(slots=2)
        yield Managed(cluster, cluster.master.managers.of("default"), agent)


Make = Callable[[Path], AbstractAsyncContextManager[Managed]]


@pytest.fixture(params=[agents], ids=["agents"])
async def managed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Managed]:
    make: Make = request.param
    async with make(tmp_path) as created:
        yield created


def groups(slots: int, count: int = 1, *, single: bool = False) -> tuple[TaskGroup, ...]:
    return (TaskGroup("trial", count=count, slots=slots, constraints=Constraints(single_agent=single)),)


async def test_a_request_that_can_never_run_is_refused_with_the_largest_that_can(managed: Managed):
    async with managed.cluster.master.database.read() as session:
        assert await managed.manager.validate(session, managed.pool, groups(2)) is None
        assert await managed.manager.validate(session, managed.pool, groups(1, count=2)) is None
        reason = await managed.manager.validate(session, managed.pool, groups(3))
        assert reason is not None
        assert "needs 3 slots" in reason
        assert "to 2 or less" in reason
        assert await managed.manager.validate(session, managed.pool, groups(2, count=2)) is not None


async def test_an_allocation_starts_and_holds_its_slots_until_it_ends(managed: Managed):
    first = await managed.submit(slots=2)
    await managed.starts(first)
    second = await managed.submit()
    async with managed.cluster.master.database.read() as session:
        capacity = await managed.manager.capacity(session, managed.pool)
    assert (capacity.agents, capacity.slots, capacity.used, capacity.slots_per_agent) == (1, 2, 2, 2)
    assert (capacity.queued, capacity.scheduled) == (1, 1)
    await managed.ends(first)
    await managed.starts(second)


async def test_preemption_is_requested_once_and_stored_with_its_reason(managed: Managed):
    allocation = await managed.submit()
    await managed.starts(allocation)
    are_requested = []
    for _ in range(2):
        async with managed.cluster.master.database.write() as session:
            row = await repository.get(session, allocation)
            are_requested.append(await managed.manager.preempt(session, row, why="for a test"))
    assert are_requested == [True, False]
    row = await managed.row(allocation)
    assert row.preempt_requested_at is not None
    assert row.message == "for a test"


async def test_a_kill_ends_running_and_waiting_allocations(managed: Managed):
    running, waiting = await managed.submit(slots=2), await managed.submit()
    await managed.starts(running)
    for each in (waiting, running):
        async with managed.cluster.master.database.write() as session:
            await managed.manager.kill(session, await repository.get(session, each), why="for a test")
    ended = await managed.row(waiting)
    assert (ended.state, ended.exit_reason) == (AllocationState.TERMINATED, ExitReason.KILLED)
    await managed.reaches(running, AllocationState.TERMINATING)
    await managed.ends(running)
    await managed.reaches(running, AllocationState.TERMINATED)


async def test_a_withdrawn_allocation_never_starts(managed: Managed):
    running = await managed.submit(slots=2)
    await managed.starts(running)
    withdrawn = await managed.submit()
    async with managed.cluster.master.database.write() as session:
        await managed.manager.withdraw(session, [withdrawn], why="for a test")
    later = await managed.submit()
    await managed.ends(running)
    await managed.starts(later)
    row = await managed.row(withdrawn)
    assert (row.state, row.placed_at) == (AllocationState.TERMINATED, None)


async def test_the_wait_of_an_allocation_is_explained_with_its_blockers(managed: Managed):
    running = await managed.submit(slots=2)
    await managed.starts(running)
    waiting = await managed.submit()
    await managed.manager.reconcile()
    async with managed.cluster.master.database.read() as session:
        explanation = await managed.manager.explain(session, await repository.get(session, waiting))
    assert explanation.reason.startswith("needs 1 slot; 0 of 2 free")
    assert [each.allocation_id for each in explanation.blockers] == [running]


async def test_the_queue_lists_waiting_and_running_allocations(managed: Managed):
    running = await managed.submit(slots=2)
    await managed.starts(running)
    waiting = await managed.submit()

    async def queue() -> PoolView | None:
        # The scheduler learns of the allocation a moment after the commit that made its row visible.
        view = await managed.manager.queue(managed.pool, slots=0, room=0)
        return view if view.waiting else None

    view = await eventually(queue)
    assert [each.allocation_id for each in view.waiting] == [waiting]
    assert [each.allocation_id for each in view.running] == [running]
    await managed.ends(running)
    await managed.starts(waiting)
    assert (await managed.manager.queue(managed.pool, slots=0, room=0)).waiting == ()


async def test_checking_the_manager_changes_nothing(managed: Managed):
    running, waiting = await managed.submit(slots=2), await managed.submit()
    await managed.starts(running)
    await managed.manager.check()
    await managed.ends(running)
    await managed.starts(waiting)


async def test_reconciling_twice_changes_nothing(managed: Managed):
    allocation = await managed.submit()
    await managed.starts(allocation)
    before = (await managed.row(allocation)).placed_at
    assert before is not None
    assert before <= datetime.now(UTC)
    await managed.manager.reconcile()
    await managed.manager.reconcile()
    assert (await managed.row(allocation)).placed_at == before


async def test_a_new_master_adopts_running_allocations(managed: Managed):
    allocation = await managed.submit()
    await managed.starts(allocation)
    state = (await managed.row(allocation)).state
    await managed.manager.adopt()
    await managed.manager.reconcile()
    assert (await managed.row(allocation)).state is state
