"""Changes of jobs, experiments and agents with very many trials: they run in lots, with other writes between them."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select
from tests.support.cluster import Cluster, open_cluster
from tests.support.columns import update_columns
from tests.support.queue_rows import end_all, fill, run_all, use_config_of
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, Holds, write_holds

from determined.states import AllocationState, ContainerState, ExperimentState, TrialState
from determined_master import notifications
from determined_master.agents.service import CONTAINERS_A_LOT
from determined_master.db.models import AllocationRow, ContainerRow, EventRow, ExperimentRow, TrialRow
from determined_master.loops.agents import AgentLoop

pytestmark = pytest.mark.budget(15, "creates very many rows")

COUNT = 5_000
JOBS = 3_000
CONTAINERS = 1_500
SEARCH = """
name: many
entrypoint: "true"
searcher: {name: random, metric: loss, max_trials: 1, max_concurrent_trials: 0}
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
"""
POOLS = [{"pool_name": "default"}, {"pool_name": "big"}]
JOB, EXPERIMENT = "job-2", "/api/v1/experiments/2"
FILLED = TrialRow.request_id.like("00000000-%")
"""The trials that ``fill`` adds; the searches create others."""
RESUMED = (EventRow.target_type == "trial", EventRow.payload["to"].as_string() == "ACTIVE")
PENDING = AllocationRow.state == AllocationState.PENDING


@pytest.fixture
async def two_pools(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with open_cluster(tmp_path, resource_pools=POOLS) as cluster:
        yield cluster


async def add_waiting(
    cluster: Cluster, count: int, *more: Callable[[Connection], None], trials: int = COUNT, config: str = SEARCH
) -> None:
    """Adds waiting trials directly to the database, from experiment 2 on, with the configuration of experiment 1."""
    await cluster.create(config, activate=False)
    assert (await cluster.post("/api/v1/experiments/1/kill")).status_code == 200
    database = cluster.master.database

    def write() -> None:
        with database.group_engine.begin() as connection:
            fill(connection, count, first=2, trials=trials)
            use_config_of(connection, 1)
            for each in more:
                each(connection)
        # No request makes a transaction as large. Its pages would be copied during one that is measured.
        path = cluster.master.settings.data / "master.sqlite"
        if path.exists():
            with contextlib.closing(sqlite3.connect(path)) as reader:
                reader.execute("PRAGMA wal_checkpoint(PASSIVE)")

    async with database.write_lock:
        await asyncio.to_thread(write)
    # The index counts the trials of an experiment as they are created, and then works in lots.
    await update_columns(cluster.master.indexer)
    database.queue_changes.is_known = False
    database.notifications.publish({notifications.SCHEDULE})
    await cluster.get("/detent/experiments/2/why")  # answered once the scheduler has read the queue anew


async def count(cluster: Cluster, *conditions: Any) -> int:
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(func.count()).where(*conditions))).one()


async def all_are(cluster: Cluster, number: int, *conditions: Any, within: float = 30) -> None:
    async def have_changed() -> bool:
        return await count(cluster, *conditions) == number

    await eventually(have_changed, within=within)


def check(holds: Holds) -> None:
    print(holds)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)


async def update(cluster: Cluster, *changes: dict[str, Any]) -> None:
    answer = await cluster.post("/api/v1/job-queues", {"updates": list(changes)})
    assert answer.status_code == 200, answer.text


async def test_a_job_of_very_many_waiting_trials_moves_to_another_pool_in_lots(two_pools: Cluster):
    cluster = two_pools
    await add_waiting(cluster, COUNT)
    with write_holds(cluster.master.database) as holds:
        await update(cluster, {"jobId": JOB, "resourcePool": "big"})
        assert await count(cluster, PENDING, AllocationRow.pool == "default") > 0
        await all_are(cluster, COUNT, PENDING, AllocationRow.pool == "big")
    check(holds)
    assert await count(cluster, AllocationRow.pool == "big", AllocationRow.run_id != 2) == 0


async def test_a_job_that_moves_back_between_the_lots_keeps_the_trials_that_had_not_moved(two_pools: Cluster):
    cluster = two_pools
    await add_waiting(cluster, COUNT)
    await update(cluster, {"jobId": JOB, "resourcePool": "big"})
    await update(cluster, {"jobId": JOB, "resourcePool": "default"})
    await all_are(cluster, COUNT, PENDING, AllocationRow.pool == "default")
    assert await count(cluster, PENDING, AllocationRow.run_id == 1) > 0


async def test_a_move_to_another_pool_goes_on_between_its_lots_when_the_master_starts_again(tmp_path: Path):
    async with open_cluster(tmp_path, resource_pools=POOLS) as cluster:
        await add_waiting(cluster, COUNT)
        await update(cluster, {"jobId": JOB, "resourcePool": "big"})
        assert await count(cluster, PENDING, AllocationRow.pool == "default") > 0
    async with open_cluster(tmp_path, resource_pools=POOLS) as cluster:
        await all_are(cluster, COUNT, PENDING, AllocationRow.pool == "big")


@pytest.mark.parametrize("number", [8_000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_waiting_trials_follow_the_priority_of_their_job_in_lots(cluster: Cluster, number: int):
    await add_waiting(cluster, number, trials=number)
    with write_holds(cluster.master.database) as holds:
        await update(cluster, {"jobId": JOB, "priority": 77})
        # The scheduler reads the priority from the job.
        assert await count(cluster, PENDING, AllocationRow.priority != 77) > 0
        await all_are(cluster, number, PENDING, AllocationRow.priority == 77)
    check(holds)


async def test_a_hundred_jobs_of_a_long_queue_change_their_places_at_once(cluster: Cluster):
    await add_waiting(cluster, JOBS, trials=1)
    with write_holds(cluster.master.database) as holds:
        await update(cluster, *({"jobId": f"job-{2 + 99 * n % JOBS}", "aheadOf": "job-100"} for n in range(3, 27)))
        await update(cluster, *({"jobId": f"job-{number}", "priority": 50} for number in range(2, 102)))
    check(holds)
    jobs = (await cluster.get("/api/v1/job-queues-v2", resourcePool="default", limit=JOBS))["jobs"]
    assert sum(each["full"]["priority"] == 50 for each in jobs) >= 100


async def test_a_search_of_very_many_ended_trials_is_continued_in_lots(cluster: Cluster):
    number = 2 * COUNT
    await add_waiting(cluster, number, end_all, trials=number)
    with write_holds(cluster.master.database) as holds:
        answer = await cluster.post("/api/v1/experiments/continue", {"id": 2})
        assert answer.status_code == 200, answer.text
        assert await count(cluster, FILLED, TrialRow.state == TrialState.CANCELED) > 0
        await all_are(cluster, number, FILLED, TrialRow.state == TrialState.ACTIVE)
    check(holds)
    assert await count(cluster, *RESUMED) == number


async def test_a_continued_search_is_paused_between_its_lots(cluster: Cluster):
    await add_waiting(cluster, COUNT, end_all)
    assert (await cluster.post("/api/v1/experiments/continue", {"id": 2})).status_code == 200
    assert (await cluster.post(f"{EXPERIMENT}/pause")).status_code == 200
    await all_are(cluster, COUNT, FILLED, TrialRow.state == TrialState.PAUSED)


async def test_a_continued_search_goes_on_between_its_lots_when_the_master_starts_again(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        await add_waiting(cluster, COUNT, end_all)
        assert (await cluster.post("/api/v1/experiments/continue", {"id": 2})).status_code == 200
        assert await count(cluster, FILLED, TrialRow.state == TrialState.CANCELED) > 0
    async with open_cluster(tmp_path) as cluster:
        await all_are(cluster, COUNT, FILLED, TrialRow.state == TrialState.ACTIVE)


async def test_a_continued_search_that_is_killed_between_its_lots_lets_no_more_trials_train(cluster: Cluster):
    await add_waiting(cluster, COUNT, end_all)
    assert (await cluster.post("/api/v1/experiments/continue", {"id": 2})).status_code == 200
    assert (await cluster.post(f"{EXPERIMENT}/kill")).status_code == 200
    ended = ExperimentRow.id == 2, ExperimentRow.state == ExperimentState.CANCELED
    await all_are(cluster, 1, *ended)
    assert await count(cluster, FILLED, TrialRow.state == TrialState.CANCELED) == COUNT
    assert 0 < await count(cluster, *RESUMED) < COUNT


async def add_containers(cluster: Cluster) -> None:
    await cluster.join(slots=CONTAINERS)
    await add_waiting(cluster, CONTAINERS, lambda connection: run_all(connection, "one"))


async def test_the_containers_of_an_agent_that_its_provider_ends_are_lost_in_lots(cluster: Cluster):
    await add_containers(cluster)
    with write_holds(cluster.master.database) as holds:
        async with cluster.master.database.write() as session:
            await cluster.master.agents.retire(session, "one", why="it is idle")
        assert await count(cluster, ContainerRow.state == ContainerState.TERMINATED) == CONTAINERS_A_LOT
        await all_are(cluster, CONTAINERS, ContainerRow.state == ContainerState.TERMINATED)
    check(holds)


async def test_the_containers_of_a_disabled_agent_end_also_if_the_master_starts_again_between_their_lots(
    tmp_path: Path,
):
    killed = AllocationRow.kill_requested_at.is_not(None)
    async with open_cluster(tmp_path) as cluster:
        await add_containers(cluster)
        assert (await cluster.post("/api/v1/agents/one/disable", {})).status_code == 200
        assert await count(cluster, killed) < CONTAINERS
    async with open_cluster(tmp_path) as cluster:
        await all_are(cluster, CONTAINERS, killed)
        assert await count(cluster, killed, AllocationRow.message == "agent one was disabled by admin") == CONTAINERS


async def test_an_agent_that_is_enabled_again_keeps_the_containers_that_were_not_asked_to_end(cluster: Cluster):
    await add_containers(cluster)
    assert (await cluster.post("/api/v1/agents/one/disable", {})).status_code == 200
    assert (await cluster.post("/api/v1/agents/one/enable", {})).status_code == 200
    killed = await count(cluster, AllocationRow.kill_requested_at.is_not(None))
    master = cluster.master
    await AgentLoop(
        master.database, master.clock, master.agents, master.registry, master.settings.agent_reconnect_wait
    ).tick()
    assert await count(cluster, AllocationRow.kill_requested_at.is_not(None)) == killed < CONTAINERS
