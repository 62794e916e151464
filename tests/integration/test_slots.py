"""The database refuses to assign a slot that is held."""

import pytest
from sqlalchemy.exc import IntegrityError
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from determined_master.allocations import repository
from determined_master.scheduling.plan import Part, Placement


async def test_a_slot_that_is_held_cannot_be_assigned_again(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    held = (await agent.wait_for_desired())[0]
    await cluster.create()
    tasks = [(await cluster.get(f"/api/v1/trials/{trial}"))["trial"]["taskId"] for trial in (1, 2)]
    waiting = next(f"{task}.1" for task in tasks if f"{task}.1" != held.allocation_id)

    async def is_requested() -> bool:
        async with cluster.master.database.read() as session:
            return await repository.find(session, waiting) is not None

    await eventually(is_requested)
    with pytest.raises(IntegrityError):
        async with cluster.master.database.write() as session:
            await cluster.master.allocations.place(session, Placement(waiting, (Part("one", (0,)),)))
    assert [w.allocation_id for w in await agent.desired()] == [held.allocation_id]
