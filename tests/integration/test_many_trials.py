"""Activating an experiment with very many trials takes a few statements, not some for each trial."""

from sqlalchemy import event, func, select
from tests.support.cluster import Cluster
from tests.support.makers import add_experiment, add_trial

from determined.states import ExperimentState, TrialState
from determined_master.db.models import EventRow, TrialRow

COUNT = 2000


async def test_activation_takes_few_statements(one: Cluster):
    database = one.master.database
    statements: list[str] = []
    async with database.write() as session:
        row = await add_experiment(session, state=ExperimentState.PAUSED, end_time=None)
        for _ in range(COUNT):
            await add_trial(session, row, state=TrialState.PAUSED, closed=False)
    event.listen(
        database.write_engine.sync_engine, "before_cursor_execute", lambda _c, _k, sql, *_: statements.append(sql)
    )
    async with database.write() as session:
        await one.master.lifecycle.activate_row(session, await session.merge(row), "admin")
        taken = len(statements)
        active = select(func.count()).where(TrialRow.state == TrialState.ACTIVE)
        assert (await session.execute(active)).scalar_one() == COUNT
        told = select(func.count()).where(EventRow.target_type == "trial", EventRow.kind == "moved")
        assert (await session.execute(told)).scalar_one() == COUNT
    assert taken < 20
