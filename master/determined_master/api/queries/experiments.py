"""Puts experiments together with what belongs to them, in as few queries as there are kinds."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from determined.states import AllocationState
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import experiments as schemas
from determined_master.db.models import ExperimentRow, TrialRow
from determined_master.trials import repository as trial_rows
from determined_master.users import repository as users

_FINER = {
    AllocationState.RUNNING: "RUNNING",
    AllocationState.TERMINATING: "RUNNING",
    AllocationState.STARTING: "STARTING",
    AllocationState.PULLING: "PULLING",
    AllocationState.ASSIGNED: "STARTING",
}
_RANK = {"RUNNING": 3, "STARTING": 2, "PULLING": 1, "QUEUED": 0}


async def show(session: AsyncSession, rows: Sequence[ExperimentRow]) -> list[schemas.Experiment]:
    ids = [row.id for row in rows]
    trials: dict[int, list[TrialRow]] = defaultdict(list)
    for trial in await trial_rows.of_experiments(session, ids):
        trials[trial.experiment_id].append(trial)
    names = {user.id: user.username for user in await users.all_users(session)}
    live = await finer_states(session, [row for row in rows if row.state.value == "ACTIVE"], trials)
    return [schemas.experiment(row, names[row.user_id], trials[row.id], live.get(row.id)) for row in rows]


async def finer_states(
    session: AsyncSession, rows: Sequence[ExperimentRow], trials: dict[int, list[TrialRow]]
) -> dict[int, str]:
    """What each ACTIVE experiment is shown as: the most progressed of its allocations."""
    owner = {trial.task_id: row.id for row in rows for trial in trials[row.id]}
    shown = {row.id: "QUEUED" for row in rows}
    for allocation in await allocation_rows.live_of_tasks(session, list(owner)):
        word = _FINER.get(allocation.state, "QUEUED")
        experiment_id = owner[allocation.task_id]
        if _RANK[word] > _RANK[shown[experiment_id]]:
            shown[experiment_id] = word
    return shown
