"""A master that stops answers who waits in a way that lets him ask the next one."""

import asyncio

from tests.support.cluster import Cluster
from tests.support.until import until

from determined_master import hints


async def test_a_rendezvous_is_asked_again(one: Cluster):
    """Anything but 503 would end the task."""
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    path = f"/api/v1/allocations/{wish.allocation_id}/resources/{wish.container_id}/rendezvous"
    asking = asyncio.create_task(one.client.get(path, headers=one.as_task(wish.allocation_id)))

    async def waits() -> bool:
        return bool(one.master.hints._listeners.get(hints.allocation(wish.allocation_id)))

    await until(waits)
    one.master.hints.close()
    answer = await asking
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == 14
