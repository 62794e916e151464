"""Actions on an experiment with many trials take a few statements, not some for each trial."""

from collections import Counter

import pytest
from sqlalchemy import func, select
from tests.integration.test_many_trials import add_search, all_wait, allocations, trials
from tests.support.cluster import Cluster
from tests.support.database_reads import writes
from tests.support.waiting import eventually

from determined.states import AllocationState, ExitReason, TrialState
from determined_master.auth.principal import Principal
from determined_master.db.models import AllocationRow, EventRow, ExperimentRow, TrialRow
from determined_master.events.repository import SYSTEM

pytestmark = pytest.mark.budget(15, "creates very many rows")

COUNT = 200
MAX_STATEMENTS = 40
ADMIN = Principal(user_id=1, username="admin", admin=True)


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
