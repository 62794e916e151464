"""Readiness of attempts: a pause preempts a ready attempt and does not kill it."""

from sqlalchemy import select
from tests.integration.test_gangs import WIDE, rendezvous
from tests.support.cluster import Cluster

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import AllocationState, ContainerState
from determined_master.db.models import AllocationRow, EventRow


async def row_of(cluster: Cluster, desired: DesiredContainer) -> AllocationRow:
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(AllocationRow).where(AllocationRow.id == desired.allocation_id))).one()


async def kinds_of(cluster: Cluster, desired: DesiredContainer) -> list[str]:
    async with cluster.master.database.read() as session:
        query = select(EventRow.kind).where(EventRow.target_id == desired.allocation_id).order_by(EventRow.id)
        return list(await session.scalars(query))


async def test_a_lone_container_is_ready_when_it_is_reported_as_running(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    (desired,) = await agent.wait_for_desired()
    assert desired.spec is not None
    assert desired.spec.is_alone
    running = agent.report_of(desired, ContainerState.RUNNING).model_copy(update={"is_ready": True})
    await cluster.master.agents.on_report(agent.id, [running])
    row = await row_of(cluster, desired)
    assert (row.state, row.ready_at is not None) == (AllocationState.RUNNING, True)
    assert await kinds_of(cluster, desired) == ["requested", "placed", "ready"]
    await cluster.post(f"/api/v1/experiments/{experiment}/pause")
    row = await row_of(cluster, desired)
    assert (row.preempt_requested_at is not None, row.kill_requested_at) == (True, None)
    assert (await rendezvous(cluster, desired))["addresses"] == [agent.address]
    assert (await row_of(cluster, desired)).ready_at == row.ready_at


async def test_a_container_with_start_up_hooks_is_not_ready_before_its_rendezvous(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.send_report(desired, ContainerState.RUNNING)
    assert (await row_of(cluster, desired)).ready_at is None
    await rendezvous(cluster, desired)
    assert (await row_of(cluster, desired)).ready_at is not None


async def test_a_container_that_ends_before_it_was_reported_as_running_counts_as_ready(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    ended = agent.report_of(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=0))
    await cluster.master.agents.on_report(agent.id, [ended.model_copy(update={"is_ready": True})])
    row = await row_of(cluster, desired)
    assert (row.state, row.ready_at is not None) == (AllocationState.TERMINATED, True)


async def test_a_gang_is_not_ready_before_all_its_containers_run(cluster: Cluster):
    agents = [await cluster.join(name, slots=2) for name in ("one", "two")]
    await cluster.create(WIDE)
    containers = [(await agent.wait_for_desired())[0] for agent in agents]
    assert [desired.spec.is_alone for desired in containers if desired.spec] == [False, False]
    first = agents[0].report_of(containers[0], ContainerState.RUNNING).model_copy(update={"is_ready": True})
    await cluster.master.agents.on_report("one", [first])
    assert (await row_of(cluster, containers[0])).ready_at is None
