"""The loop of trials: an allocation that ends in the middle of a tick."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from determined_master import notifications
from determined_master.loops.trials import TrialLoop


async def test_a_stopped_trial_gets_its_state_from_the_end_of_its_allocation(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """The allocation ends in the middle of a tick. It is settled once, before the trial ends."""
    is_armed, is_held, goes_on = False, asyncio.Event(), asyncio.Event()
    settle = TrialLoop._settle

    async def held(self: TrialLoop, allocation_ids: Sequence[str]) -> float | None:
        wait = await settle(self, allocation_ids)
        if is_armed:
            is_held.set()
            await goes_on.wait()
        return wait

    monkeypatch.setattr(TrialLoop, "_settle", held)
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await cluster.post(f"/api/v1/experiments/{experiment}/cancel")
    is_armed = True
    cluster.master.notifications.publish([notifications.TRIALS])
    await is_held.wait()
    await agent.exit(desired, code=1)
    is_armed = False
    goes_on.set()

    async def ended() -> str:
        state = (await cluster.get("/api/v1/trials/1"))["trial"]["state"]
        return state if state in ("STATE_ERROR", "STATE_CANCELED") else ""

    assert await eventually(ended) == "STATE_ERROR"
