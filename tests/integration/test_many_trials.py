"""Actions on an experiment with very many trials delay no other request."""

import asyncio
import json
import time

import pytest
from sqlalchemy import func, select
from tests.support.cluster import Cluster
from tests.support.makers import add_experiment, effective
from tests.support.waiting import eventually

from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.db.models import AllocationRow, TaskRow, TrialRow
from determined_master.searcher.actions import Create, CreateMore, LotDue
from determined_master.searcher.methods import make
from determined_master.trials.repository import task_of

pytestmark = pytest.mark.budget(15, "creates very many rows")

COUNT = 10_000


async def add_search(cluster: Cluster, count: int) -> int:
    """Adds a paused random search with ``count`` paused trials, as its searcher made them."""
    hyperparameters = {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}}
    config = effective(hyperparameters, max_restarts=5, entrypoint="true")
    config |= {
        "environment": {},
        "reproducibility": {"experiment_seed": 1},
        "searcher": {"name": "random", "metric": "loss", "max_trials": count},
    }
    search = make(config, None)
    actions = search.initial()
    while isinstance(actions[-1], CreateMore):
        actions = actions[:-1] + search.on_event(LotDue())
    async with cluster.master.database.write() as session:
        row = await add_experiment(
            session,
            state=ExperimentState.PAUSED,
            end_time=None,
            config=config,
            searcher_type="random",
            searcher_snapshot=search.snapshot(),
        )
        trials = [
            TrialRow(
                experiment_id=row.id,
                request_id=action.request_id,
                task_id=f"{row.id}.{action.request_id}",
                state=TrialState.PAUSED,
                hparams=action.hparams,
                seed=1,
                start_time=row.start_time,
            )
            for action in actions
            if isinstance(action, Create)
        ]
        session.add_all([*trials, *(TaskRow(**task_of(row, vars(trial))) for trial in trials)])
    return row.id


async def trials(cluster: Cluster, state: TrialState) -> int:
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(func.count()).where(TrialRow.state == state))).one()


async def allocations(cluster: Cluster, state: AllocationState) -> int:
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(func.count()).where(AllocationRow.state == state))).one()


async def all_wait(cluster: Cluster, count: int) -> None:
    async def done() -> bool:
        return await allocations(cluster, AllocationState.PENDING) == count

    await eventually(done, within=120)


async def slowest_health(cluster: Cluster, until: asyncio.Event) -> float:
    """Returns the longest time that ``/health`` took until the event is set."""
    longest = 0.0
    while not until.is_set():
        start = time.monotonic()
        assert (await cluster.client.get("/health")).status_code == 200
        longest = max(longest, time.monotonic() - start)
        await asyncio.sleep(0.01)
    return longest


@pytest.mark.long
@pytest.mark.parametrize("last", ["cancel", "kill"])
async def test_actions_on_ten_thousand_trials_block_no_other_request(cluster: Cluster, last: str):
    """Each action answers in seconds, and others are answered meanwhile."""
    experiment = await add_search(cluster, COUNT)
    over = asyncio.Event()
    health = asyncio.create_task(slowest_health(cluster, over))
    seconds: dict[str, float] = {}
    for verb in ("activate", "pause", "activate", last):
        start = time.monotonic()
        answer = await cluster.post(f"/api/v1/experiments/{experiment}/{verb}", {})
        seconds[verb] = max(seconds.get(verb, 0.0), time.monotonic() - start)
        assert answer.status_code == 200, answer.text
        if verb == "activate":
            await all_wait(cluster, COUNT)

    async def ended() -> bool:
        return await trials(cluster, TrialState.CANCELED) == COUNT

    await eventually(ended, within=120)
    over.set()
    longest = await health
    print(json.dumps({"seconds": seconds, "slowest health": longest}))
    assert max(seconds.values()) < 10
    assert longest < 1.0
