"""Containers without slots: an agent runs up to a limit, and further ones wait with the reason."""

from pathlib import Path

from tests.support.cluster import Cluster, open_cluster
from tests.support.waiting import eventually

CONFIG = """
name: none
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
hyperparameters: {}
resources: {slots_per_trial: 0}
"""


async def test_tasks_without_slots_beyond_the_limit_wait_until_one_has_ended(tmp_path: Path):
    async with open_cluster(tmp_path, max_zero_slot_containers=2) as cluster:
        agent = await cluster.join(slots=1)
        for _ in range(3):
            await cluster.create(CONFIG)
        containers = await agent.wait_for_desired(2)
        await eventually(lambda: _waits_alone_for(cluster, "max_zero_slot_containers"))
        (pool,) = (await cluster.get("/api/v1/resource-pools"))["resourcePools"]
        assert (pool["auxContainersRunning"], pool["auxContainerCapacityPerAgent"]) == (2, 2)
        assert len(await agent.desired()) == 2
        await agent.run(containers[0])
        await agent.exit(containers[0])
        await eventually(lambda: _is_third_placed(agent, containers))


async def _waits_alone_for(cluster: Cluster, text: str) -> bool:
    """Returns True if exactly one entry of the queue waits, and for this reason."""
    queue = (await cluster.get("/detent/cluster/overview"))["queue"]
    return [text in entry["waiting"] for entry in queue if entry["waiting"]] == [True]


async def _is_third_placed(agent, before) -> bool:
    known = {desired.container_id for desired in before}
    return any(desired.container_id not in known for desired in await agent.desired())
