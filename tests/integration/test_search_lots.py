"""Searches of very many trials: answered after the first lot, with other writes between the lots and no trial lost."""

import asyncio
import time
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.support.cluster import Cluster, open_cluster
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, Holds, write_holds

from determined.states import AllocationState, TrialState
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.loops.trial_states import TrialStates
from determined_master.searcher.actions import Create, CreateMore, LotDue
from determined_master.searcher.method import TRIALS_A_LOT
from determined_master.searcher.methods import make

pytestmark = pytest.mark.budget(15, "creates very many rows")

COUNT = 2_000
MAX_ANSWER_SECONDS = 1.0


def config(count: int) -> str:
    return f"""
name: many
entrypoint: "true"
searcher: {{name: random, metric: loss, max_trials: {count}, max_concurrent_trials: 0}}
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
reproducibility: {{experiment_seed: 5}}
"""


async def count_of(cluster: Cluster, *states: TrialState) -> int:
    async with cluster.master.database.read() as session:
        query = select(func.count()).select_from(TrialRow)
        return (await session.scalars(query.where(TrialRow.state.in_(states)) if states else query)).one()


async def stored(cluster: Cluster) -> list[tuple[str, object, int]]:
    async with cluster.master.database.read() as session:
        rows = await session.execute(select(TrialRow.request_id, TrialRow.hparams, TrialRow.seed).order_by(TrialRow.id))
        return [tuple(row) for row in rows]


async def expected(cluster: Cluster, experiment: int) -> list[tuple[str, object, int]]:
    """Returns the trials that the method creates without any interruption."""
    async with cluster.master.database.read() as session:
        row = await session.get_one(ExperimentRow, experiment)
    search = make(row.config, None)
    actions = search.initial()
    while isinstance(actions[-1], CreateMore):
        actions = actions[:-1] + search.on_event(LotDue())
    return [(each.request_id, each.hparams, each.seed) for each in actions if isinstance(each, Create)]


async def all_created(cluster: Cluster, count: int, within: float = 60) -> None:
    async def done() -> bool:
        return await count_of(cluster) == count

    await eventually(done, within=within)


def check_holds(holds: Holds) -> None:
    print(holds)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)


@pytest.mark.parametrize("count", [COUNT, pytest.param(200_000, marks=pytest.mark.long)])
async def test_a_search_of_many_trials_is_answered_at_once_and_others_write_between_its_lots(
    cluster: Cluster, count: int
):
    with write_holds(cluster.master.database) as holds:
        start = time.process_time()
        experiment = await cluster.create(config(count), activate=False)
        assert time.process_time() - start < MAX_ANSWER_SECONDS
        assert await count_of(cluster) < count
        writes = 0
        while await count_of(cluster) < count:
            answer = await cluster.client.patch(f"/api/v1/experiments/{experiment}", json={"notes": f"note {writes}"})
            assert answer.status_code == 200
            writes += 1
            await asyncio.sleep(0.01)
    assert writes > 3
    assert await stored(cluster) == await expected(cluster, experiment)
    check_holds(holds)


async def test_a_small_search_has_all_trials_when_it_is_answered(cluster: Cluster):
    await cluster.create(config(TRIALS_A_LOT), activate=False)
    assert await count_of(cluster) == TRIALS_A_LOT


async def test_a_search_is_paused_and_activated_between_its_lots(cluster: Cluster):
    experiment = await cluster.create(config(COUNT))
    path = f"/api/v1/experiments/{experiment}"
    assert (await cluster.post(f"{path}/pause")).status_code == 200
    assert await count_of(cluster) < COUNT
    await all_created(cluster, COUNT)

    async def all_paused() -> bool:
        return await count_of(cluster, TrialState.PAUSED) == COUNT

    await eventually(all_paused, within=30)
    async with cluster.master.database.read() as session:
        live = select(func.count()).where(AllocationRow.state != AllocationState.TERMINATED)
        assert (await session.scalars(live)).one() == 0
    with write_holds(cluster.master.database) as holds:
        assert (await cluster.post(f"{path}/activate")).status_code == 200

        async def all_active() -> bool:
            return await count_of(cluster, TrialState.ACTIVE) == COUNT

        await eventually(all_active, within=30)
    assert await stored(cluster) == await expected(cluster, experiment)
    check_holds(holds)


async def test_a_search_that_is_killed_between_its_lots_creates_no_more_and_can_be_deleted(cluster: Cluster):
    experiment = await cluster.create(config(COUNT))
    path = f"/api/v1/experiments/{experiment}"
    assert (await cluster.post(f"{path}/kill")).status_code == 200
    created = await count_of(cluster)
    assert created < COUNT

    async def ended() -> bool:
        return await cluster.state(experiment) == "STATE_CANCELED"

    await eventually(ended, within=30)
    assert await count_of(cluster, TrialState.CANCELED) == await count_of(cluster) == created
    assert (await cluster.client.delete(path)).status_code == 200

    async def deleted() -> bool:
        return (await cluster.client.get(path)).status_code == 404

    await eventually(deleted, within=30)


async def test_a_search_that_was_killed_between_its_lots_is_continued_with_the_same_trials(cluster: Cluster):
    experiment = await cluster.create(config(COUNT))
    await cluster.post(f"/api/v1/experiments/{experiment}/kill")

    async def ended() -> bool:
        return await cluster.state(experiment) == "STATE_CANCELED"

    await eventually(ended, within=30)
    answer = await cluster.post("/api/v1/experiments/continue", {"id": experiment})
    assert answer.status_code == 200, answer.text
    await all_created(cluster, COUNT)
    assert await stored(cluster) == await expected(cluster, experiment)


async def test_a_search_goes_on_between_its_lots_when_the_master_starts_again(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        experiment = await cluster.create(config(COUNT), activate=False)
        assert await count_of(cluster) < COUNT
    async with open_cluster(tmp_path) as cluster:
        await all_created(cluster, COUNT)
        assert await stored(cluster) == await expected(cluster, experiment)


async def no_lot(_loop: TrialStates) -> None:
    """Replaces the tick of a master that ends before it moves another lot: a master that stops lets its ticks end."""


async def test_a_pause_goes_on_between_its_lots_when_the_master_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as before_the_restart:
        before_the_restart.setattr(TrialStates, "tick", no_lot)
        async with open_cluster(tmp_path) as cluster:
            experiment = await cluster.create(config(COUNT))
            await all_created(cluster, COUNT)
            assert (await cluster.post(f"/api/v1/experiments/{experiment}/pause")).status_code == 200
            assert await count_of(cluster, TrialState.ACTIVE) > 0
    async with open_cluster(tmp_path) as cluster:

        async def all_paused() -> bool:
            return await count_of(cluster, TrialState.PAUSED) == COUNT

        await eventually(all_paused, within=10)


async def test_a_much_larger_limit_creates_trials_in_lots(cluster: Cluster):
    experiment = await cluster.create(config(2), activate=False)
    with write_holds(cluster.master.database) as holds:
        answer = await cluster.client.patch(
            f"/api/v1/experiments/{experiment}", json={"searcher": {"maxTrials": COUNT}}
        )
        assert answer.status_code == 200, answer.text
        await all_created(cluster, COUNT)
    check_holds(holds)
    assert (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["numTrials"] == COUNT
