"""Containers without slots: an agent runs so many, and further ones wait and say why."""

from pathlib import Path

from tests.support.cluster import Cluster, cluster
from tests.support.waiting import eventually

CONFIG = """
name: none
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
hyperparameters: {}
resources: {slots_per_trial: 0}
"""


async def test_tasks_without_slots_beyond_the_limit_wait_until_one_has_ended(tmp_path: Path):
    async with cluster(tmp_path, max_zero_slot_containers=2) as one:
        agent = await one.join(slots=1)
        for _ in range(3):
            await one.create(CONFIG)
        wishes = await agent.wished(2)
        await eventually(lambda: _is_said(one, "max_zero_slot_containers"))
        (pool,) = (await one.get("/api/v1/resource-pools"))["resourcePools"]
        assert (pool["auxContainersRunning"], pool["auxContainerCapacityPerAgent"]) == (2, 2)
        assert len(await agent.wish()) == 2
        await agent.run(wishes[0])
        await agent.exit(wishes[0])
        await eventually(lambda: _is_third_placed(agent, wishes))


async def _is_said(one: Cluster, text: str) -> bool:
    """True when the queue names this as the reason of exactly one that waits."""
    queue = (await one.get("/detent/cluster/overview"))["queue"]
    return [text in entry["waiting"] for entry in queue if entry["waiting"]] == [True]


async def _is_third_placed(agent, before) -> bool:
    known = {wish.container_id for wish in before}
    return any(wish.container_id not in known for wish in await agent.wish())
