"""Steps of a search task with very many actions are stored in lots, with other writes between them and none lost."""

from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.support.cluster import Cluster, open_cluster
from tests.support.search_runner import OWN, Runner, begin_search, create_action
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, write_holds

from determined.states import TrialState
from determined_master.db.models import SearchEventRow, TrialRow
from determined_master.experiments.search_actions import SearchActions

pytestmark = pytest.mark.budget(15, "creates very many rows")

MANY = 5_000
CONFIG = OWN.replace("max_trials: 3", f"max_trials: {MANY}")
FEWER = 1_000


def creations(count: int) -> list[dict[str, object]]:
    return [create_action(f"t{n}", x=n / count) for n in range(count)]


async def names(cluster: Cluster) -> list[str]:
    async with cluster.master.database.read() as session:
        return list(await session.scalars(select(TrialRow.request_id).order_by(TrialRow.id)))


async def test_very_many_actions_of_a_step_are_stored_and_others_write_between_them(cluster: Cluster):
    _, runner = await begin_search(cluster, CONFIG)
    with write_holds(cluster.master.database) as holds:
        answer = await runner.step(*creations(MANY), to=0)
        assert answer.status_code == 200, answer.text
    print(holds)
    assert await names(cluster) == [f"t{n}" for n in range(MANY)]
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)


async def test_many_trials_that_a_step_stops_are_stopped_in_lots(cluster: Cluster):
    _, runner = await begin_search(cluster, CONFIG)
    assert (await runner.step(*creations(FEWER), to=0)).status_code == 200
    # Somebody kills a trial: an event that leads to the next step.
    assert (await cluster.post(f"/api/v1/trials/{FEWER}/kill")).status_code == 200
    await runner.events()
    stops = [{"kind": "stop", "requestId": f"t{n}"} for n in range(FEWER)]
    with write_holds(cluster.master.database) as holds:
        answer = await runner.step(*stops)
        assert answer.status_code == 200, answer.text
    print(holds)
    async with cluster.master.database.read() as session:
        running = select(func.count()).where(TrialRow.state == TrialState.ACTIVE)
        assert (await session.scalars(running)).one() == 0
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)


async def interrupt_step(cluster: Cluster) -> Runner:
    """Sends a step whose request fails after the first lot, as if the master had been killed; returns its runner."""
    _, runner = await begin_search(cluster, CONFIG)

    async def fail(*_: object) -> bool:
        raise RuntimeError("killed")

    original, SearchActions.apply_kept_lot = SearchActions.apply_kept_lot, fail  # type: ignore[method-assign]
    try:
        assert (await runner.step(*creations(FEWER), to=0)).status_code == 500
    finally:
        SearchActions.apply_kept_lot = original  # type: ignore[method-assign]
    return runner


async def test_a_step_that_was_interrupted_between_lots_goes_on_when_the_master_starts_again(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        runner = await interrupt_step(cluster)
    async with open_cluster(tmp_path) as cluster:

        async def all_created() -> bool:
            return len(await names(cluster)) == FEWER

        await eventually(all_created, within=30)
        runner.cluster = cluster
        # The task repeats the step, whose answer it did not get.
        answer = await runner.step(*creations(FEWER), to=0)
        assert answer.json() == {"isOver": False}
        assert await names(cluster) == [f"t{n}" for n in range(FEWER)]
        assert await runner.events(timeout=0) == []


async def test_a_repeated_step_finishes_the_lots_of_the_first_one(cluster: Cluster):
    runner = await interrupt_step(cluster)
    answer = await runner.step(*creations(FEWER), to=0)
    assert answer.json() == {"isOver": False}
    assert await names(cluster) == [f"t{n}" for n in range(FEWER)]


async def test_a_search_that_is_killed_between_the_lots_of_a_step_creates_no_more(cluster: Cluster):
    await interrupt_step(cluster)
    assert (await cluster.post("/api/v1/experiments/1/kill")).status_code == 200

    async def ended() -> bool:
        return await cluster.state(1) == "STATE_CANCELED"

    created = len(await names(cluster))
    await eventually(ended, within=30)
    assert len(await names(cluster)) == created < FEWER
    async with cluster.master.database.read() as session:
        waiting = select(func.count()).where(SearchEventRow.processed.is_(False), SearchEventRow.kind == "actions")
        assert (await session.scalars(waiting)).one() == 0
