"""Allocations that are placed in the moment in which the cluster is told to drain."""

import asyncio
from pathlib import Path

from tests.support.cluster import Cluster, open_cluster
from tests.support.waiting import eventually

from determined.states import AllocationState
from determined_master.allocations import repository
from determined_master.db.models import AllocationRow
from determined_master.scheduling.plan import Part, Placement


async def allocation(cluster: Cluster) -> AllocationRow:
    """Returns the only one, once it is there."""

    async def found() -> AllocationRow | None:
        async with cluster.master.database.read() as session:
            return next(iter(await repository.live(session)), None)

    return await eventually(found)


async def test_a_tick_that_began_before_a_drain_places_nothing(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        await cluster.create()
        await allocation(cluster)
        assert (await cluster.post("/detent/drain", {})).status_code == 200
        await cluster.join()
        await cluster.master.managers.reconcile()
        assert (await allocation(cluster)).state is AllocationState.PENDING


async def test_a_placement_that_began_before_a_drain_is_ended_by_it(tmp_path: Path) -> None:
    async with open_cluster(tmp_path) as cluster:
        master = cluster.master
        await cluster.create()
        pending = await allocation(cluster)
        # No loop places it: the placement below is the one that a tick had decided.
        master.draining.set()
        await cluster.join()
        master.draining.clear()
        async with master.database.write() as session:
            await master.allocations.place(session, Placement(pending.id, (Part("one", (0,)),)))
            drained = asyncio.create_task(cluster.post("/detent/drain", {}))
            await eventually(master.draining.is_set)
        assert (await drained).status_code == 200
        assert (await allocation(cluster)).kill_requested_at is not None, "it cannot save yet"
