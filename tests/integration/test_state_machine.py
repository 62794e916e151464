"""Changes of states: guarded by the stored state, recorded as events, and without effect when repeated."""

import pytest
from sqlalchemy import update
from tests.support.cluster import Cluster
from tests.support.makers import rolled_back

from determined.errors import PreconditionFailed
from determined.states import ExperimentState
from determined_master.db.models import ExperimentRow
from determined_master.events import repository as events
from determined_master.experiments import repository


async def test_a_change_of_state_is_recorded_in_the_same_transaction(cluster: Cluster):
    experiment = await cluster.create(activate=False)
    async with rolled_back(cluster.master.database) as session:
        row = await repository.get(session, experiment)
        assert await repository.move(session, cluster.master.clock, row, ExperimentState.ACTIVE, actor="ann")
        assert row.state is ExperimentState.ACTIVE
        event = await events.last_move(session, "experiment", experiment)
        assert event is not None
        assert event.payload == {"from": "PAUSED", "to": "ACTIVE"}
    async with cluster.master.database.read() as session:
        assert (await repository.get(session, experiment)).state is ExperimentState.PAUSED
        assert await events.last_move(session, "experiment", experiment) is None


async def test_a_change_is_refused_if_another_caller_changed_the_state_before(cluster: Cluster):
    """The caller's row is still PAUSED; the guard compares the state in the database."""
    experiment = await cluster.create(activate=False)
    async with cluster.master.database.write() as session:
        row = await repository.get(session, experiment)
        changed = update(ExperimentRow).where(ExperimentRow.id == experiment).values(state=ExperimentState.COMPLETED)
        await session.execute(changed.execution_options(synchronize_session=False))
        assert row.state is ExperimentState.PAUSED
        with pytest.raises(PreconditionFailed, match="is completed and cannot become active"):
            await repository.move(session, cluster.master.clock, row, ExperimentState.ACTIVE)


async def test_moving_to_the_present_state_changes_and_records_nothing(cluster: Cluster):
    experiment = await cluster.create(activate=False)
    async with cluster.master.database.write() as session:
        row = await repository.get(session, experiment)
        assert not await repository.move(session, cluster.master.clock, row, ExperimentState.PAUSED, progress=0.5)
        assert row.progress == 0
        assert await events.last_move(session, "experiment", experiment) is None


async def test_a_changed_row_object_equals_the_stored_row(cluster: Cluster):
    experiment = await cluster.create(activate=False)
    async with rolled_back(cluster.master.database) as session:
        row = await repository.get(session, experiment)
        await repository.change(session, row, name="a\0b", labels=["c\0d"])
        changed = (row.name, row.labels)
        await session.refresh(row)
        assert changed == (row.name, row.labels) == ("a\u2400b", ["c\u2400d"])
