"""Actions on an experiment with very many trials take a few statements, not some for each trial."""

import asyncio
import json
import time
from collections import Counter

import pytest
from sqlalchemy import func, select
from tests.support.cluster import Cluster
from tests.support.database_reads import writes
from tests.support.makers import add_experiment, effective
from tests.support.waiting import eventually

from determined.states import AllocationState, ExitReason, ExperimentState, TrialState
from determined_master.db.models import AllocationRow, EventRow, ExperimentRow, TaskRow, TrialRow
from determined_master.events.repository import SYSTEM
from determined_master.principal import Principal
from determined_master.searcher.actions import Create, CreateMore, LotDue
from determined_master.searcher.methods import make
from determined_master.trials.repository import task_of

COUNT, LONG_COUNT = 200, 10_000
MAX_STATEMENTS = 40
ADMIN = Principal(user_id=1, username="admin", admin=True)


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
        session.add_all([*trials, *(TaskRow(**task_of(row, trial)) for trial in trials)])
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


async def test_activate_pause_cancel_and_kill_take_few_statements(cluster: Cluster):
    experiment = await add_search(cluster, COUNT)
    lifecycle = cluster.master.lifecycle
    for verb, state in (
        (lifecycle.activate, TrialState.ACTIVE),
        (lifecycle.pause, TrialState.PAUSED),
        (lifecycle.cancel, TrialState.STOPPING_CANCELED),
        (lifecycle.kill, TrialState.STOPPING_KILLED),
    ):
        async with cluster.master.database.write() as session:
            with writes(cluster.master.database) as statements:
                await verb(experiment, ADMIN, session)
            changed = (await session.scalars(select(func.count()).where(TrialRow.state == state))).one()
        assert (changed, len(statements) < MAX_STATEMENTS) == (COUNT, True), (verb.__name__, len(statements))


async def test_slots_are_requested_and_given_back_in_few_statements(cluster: Cluster):
    experiment = await add_search(cluster, COUNT)
    with writes(cluster.master.database) as statements:
        await cluster.master.lifecycle.activate(experiment, ADMIN)
        await all_wait(cluster, COUNT)
        await cluster.master.lifecycle.pause(experiment, ADMIN)
    assert await allocations(cluster, AllocationState.PENDING) == 0
    async with cluster.master.database.read() as session:
        rows = (await session.scalars(select(AllocationRow).where(AllocationRow.task_id.like(f"{experiment}.%")))).all()
        query = select(EventRow.kind).where(EventRow.target_type == "allocation", EventRow.actor == SYSTEM)
        kinds = Counter((await session.scalars(query)).all())
    assert {(row.exit_reason, row.message, row.settled, row.run_id) for row in rows} == {
        (ExitReason.KILLED, "paused by admin", True, 1)
    }
    assert kinds == {"requested": COUNT, "ended": COUNT}
    # With a statement for each trial there would be several times COUNT.
    assert len(statements) < COUNT


async def test_a_search_that_is_killed_ends_in_few_statements(cluster: Cluster):
    experiment = await add_search(cluster, COUNT)
    await cluster.master.lifecycle.activate(experiment, ADMIN)
    await all_wait(cluster, COUNT)
    with writes(cluster.master.database) as statements:
        await cluster.master.lifecycle.kill(experiment, ADMIN)

        async def ended() -> bool:
            return await cluster.state(experiment) == "STATE_CANCELED"

        await eventually(ended, within=60)
        assert await trials(cluster, TrialState.CANCELED) == COUNT

        async def all_are_processed() -> bool:
            async with cluster.master.database.read() as session:
                row = await session.get_one(ExperimentRow, experiment)
            return len(row.searcher_snapshot["closed"]) == COUNT

        await eventually(all_are_processed)
    assert len(statements) < COUNT
    async with cluster.master.database.read() as session:
        row = (await session.scalars(select(TrialRow).limit(1))).one()
    assert (row.exit_reason, row.closed, row.end_time is None) == (ExitReason.KILLED, True, False)


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
    experiment = await add_search(cluster, LONG_COUNT)
    over = asyncio.Event()
    health = asyncio.create_task(slowest_health(cluster, over))
    seconds: dict[str, float] = {}
    for verb in ("activate", "pause", "activate", last):
        start = time.monotonic()
        answer = await cluster.post(f"/api/v1/experiments/{experiment}/{verb}", {})
        seconds[verb] = max(seconds.get(verb, 0.0), time.monotonic() - start)
        assert answer.status_code == 200, answer.text
        if verb == "activate":
            await all_wait(cluster, LONG_COUNT)

    async def ended() -> bool:
        return await trials(cluster, TrialState.CANCELED) == LONG_COUNT

    await eventually(ended, within=120)
    over.set()
    longest = await health
    print(json.dumps({"seconds": seconds, "slowest health": longest}))
    assert max(seconds.values()) < 10
    assert longest < 1.0
