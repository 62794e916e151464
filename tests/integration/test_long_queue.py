"""A long queue: requests are answered while it is explained and changed."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.support.cluster import Cluster, open_cluster
from tests.support.queue_rows import fill
from tests.support.waiting import eventually

from determined.states import AllocationState
from determined_master import notifications
from determined_master.db.models import AllocationRow
from determined_master.resource_managers import waiting_reasons

pytestmark = pytest.mark.budget(15, "fills a long queue")

MAX_SECONDS = 0.1
"""A scheduler that reads its state anew for each decision takes 0.4 s."""


async def fill_queue(cluster: Cluster, count: int) -> None:
    """Adds the rows directly to the database, as if the master had been started with them."""
    database = cluster.master.database

    def put() -> None:
        with database.group_engine.begin() as connection:
            fill(connection, count)

    await asyncio.to_thread(put)
    database.queue_changes.is_known = False
    database.notifications.publish({notifications.SCHEDULE})


async def count_placed(cluster: Cluster) -> int:
    async with cluster.master.database.read() as session:
        query = select(func.count()).where(AllocationRow.state == AllocationState.ASSIGNED)
        return (await session.scalars(query)).one()


async def response_times(cluster: Cluster, over: asyncio.Event) -> list[float]:
    """Requests ``/info`` every ten milliseconds until the event is set; returns the response times, longest first."""
    times = []
    while not over.is_set():
        due = time.perf_counter() + 0.01
        await asyncio.sleep(0.01)
        assert (await cluster.client.get("/info")).status_code == 200
        times.append(time.perf_counter() - due)
    return sorted(times, reverse=True)


PROVIDER = {"type": "command", "launch": ["true"], "terminate": ["true"], "max_agents": 4, "slots_per_agent": 8}


@pytest.mark.parametrize("queued", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_info_is_answered_while_a_long_queue_is_explained_changed_and_provided_for(tmp_path: Path, queued: int):
    async with open_cluster(tmp_path, resource_pools=[{"pool_name": "default", "provider": PROVIDER}]) as cluster:
        await cluster.join("one", slots=4)
        await fill_queue(cluster, queued)
        await eventually(lambda: count_placed(cluster), within=60)
        over = asyncio.Event()
        asking = asyncio.create_task(response_times(cluster, over))
        answers: list[Any] = []
        for number in range(1, 13):
            answers.append(await cluster.get(f"/detent/experiments/{number + 20}/why"))
            change = {"resources": {"priority": 50 + number}}
            assert (await cluster.client.patch(f"/api/v1/experiments/{number}", json=change)).status_code == 200
        over.set()
        times = await asking
    assert len(times) > 50
    assert times[len(times) // 100] < MAX_SECONDS
    assert all(answer["waiting"] == 500 and answer["first"]["reason"] for answer in answers)


@pytest.mark.sqlite
@pytest.mark.parametrize("queued", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_reading_a_long_queue_anew_and_freeing_it_holds_the_loop_up_for_5_ms_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: int
):
    seconds: list[float] = []
    run = asyncio.Handle._run  # type: ignore[attr-defined]  # noqa: SLF001  # there is no public hook for callbacks

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        seconds.append(time.thread_time() - began)

    async with open_cluster(tmp_path) as cluster:
        await fill_queue(cluster, queued)
        await eventually(lambda: is_kept(cluster, queued), within=60)
        kept = cluster.master.managers.of("default").kept  # type: ignore[attr-defined]
        monkeypatch.setattr(asyncio.Handle, "_run", timed)
        longest = []
        for _ in range(3):  # the shortest of three: the processor is shared
            seconds.clear()
            assert not await kept.check()
            longest.append(max(seconds))
    assert len(seconds) > queued / 100
    assert min(longest) < 0.005


async def is_kept(cluster: Cluster, queued: int) -> bool:
    """Returns True once the scheduler's state holds the queue."""
    async with cluster.master.managers.of("default").kept.current() as pools:  # type: ignore[attr-defined]
        return len(pools["default"].scheduler.pool.queue) == queued


@pytest.mark.sqlite
async def test_reasons_of_a_queue_that_is_longer_than_a_batch_are_all_stored_in_turn(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(waiting_reasons, "MAX_BATCH", 50)
    monkeypatch.setattr(waiting_reasons, "DELAY_SECONDS", 0.01)
    await cluster.join("one", slots=1)
    await fill_queue(cluster, 200)

    async def all_stored() -> bool:
        query = select(func.count()).where(
            AllocationRow.state == AllocationState.PENDING, AllocationRow.waiting.like("needs %")
        )
        async with cluster.master.database.read() as session:
            return (await session.scalars(query)).one() == 199

    await eventually(all_stored)
