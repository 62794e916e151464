"""When an attempt is ready, after which it is paused by checkpoint and not killed."""

from sqlalchemy import select
from tests.integration.test_gangs import WIDE, met
from tests.integration.test_statements import transactions
from tests.support.cluster import Cluster

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import AllocationState, ContainerState
from determined_master.db.models import AllocationRow, EventRow


async def row_of(one: Cluster, wish: DesiredContainer) -> AllocationRow:
    async with one.master.database.read() as session:
        return (await session.scalars(select(AllocationRow).where(AllocationRow.id == wish.allocation_id))).one()


async def kinds_of(one: Cluster, wish: DesiredContainer) -> list[str]:
    async with one.master.database.read() as session:
        query = select(EventRow.kind).where(EventRow.target_id == wish.allocation_id).order_by(EventRow.id)
        return list(await session.scalars(query))


async def test_a_container_that_is_alone_is_told_so_and_is_ready_as_it_runs(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    (wish,) = await agent.wished()
    assert wish.spec is not None
    assert wish.spec.is_alone
    running = agent.truth(wish, ContainerState.RUNNING).model_copy(update={"is_ready": True})
    with transactions(one.master.database) as found:
        await one.master.agents.on_report(agent.id, [running])
    (statements,) = [each for each in found if any("ready_at" in statement for statement in each)]
    assert [each.split()[0] for each in statements] == ["SELECT", "UPDATE", "UPDATE", "INSERT"]
    row = await row_of(one, wish)
    assert (row.state, row.ready_at is not None) == (AllocationState.RUNNING, True)
    assert await kinds_of(one, wish) == ["requested", "placed", "ready"]
    await one.post(f"/api/v1/experiments/{experiment}/pause")
    row = await row_of(one, wish)
    assert (row.preempt_requested_at is not None, row.kill_requested_at) == (True, None)
    assert (await met(one, wish))["addresses"] == [agent.address]
    assert (await row_of(one, wish)).ready_at == row.ready_at


async def test_a_container_with_start_up_hooks_is_not_ready_before_its_rendezvous(one: Cluster):
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    await agent.say(wish, ContainerState.RUNNING)
    assert (await row_of(one, wish)).ready_at is None
    await met(one, wish)
    assert (await row_of(one, wish)).ready_at is not None


async def test_a_container_that_ends_before_it_was_reported_as_running_was_ready(one: Cluster):
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    ended = agent.truth(wish, ContainerState.TERMINATED, ContainerExit(kind="exited", code=0))
    await one.master.agents.on_report(agent.id, [ended.model_copy(update={"is_ready": True})])
    row = await row_of(one, wish)
    assert (row.state, row.ready_at is not None) == (AllocationState.TERMINATED, True)


async def test_a_gang_is_not_ready_before_all_of_it_runs(one: Cluster):
    agents = [await one.join(name, slots=2) for name in ("one", "two")]
    await one.create(WIDE)
    wishes = [(await agent.wished())[0] for agent in agents]
    assert [wish.spec.is_alone for wish in wishes if wish.spec] == [False, False]
    first = agents[0].truth(wishes[0], ContainerState.RUNNING).model_copy(update={"is_ready": True})
    await one.master.agents.on_report("one", [first])
    assert (await row_of(one, wishes[0])).ready_at is None
