"""Loads experiments with their trials and users, in one query per kind."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from determined.config import masking
from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import experiments as schemas
from determined_master.db.models import ExperimentRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.display_state import display_state
from determined_master.offloading import MAX_INLINE_CHARACTERS
from determined_master.trials import repository as trial_rows
from determined_master.users import repository as users

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
_MAY_HOLD_SLOTS = (ExperimentState.ACTIVE, ExperimentState.PAUSED)
_limiter: RunVar[CapacityLimiter] = RunVar("threads that mask configurations")


async def show(session: ReadSession, rows: Sequence[ExperimentRow]) -> list[schemas.Experiment]:
    ids = [row.id for row in rows]
    trials: dict[int, list[TrialRow]] = defaultdict(list)
    for trial in await trial_rows.of_experiments(session, ids):
        trials[trial.experiment_id].append(trial)
    names = {user.id: user.username for user in await users.all_users(session)}
    shown = await displayed(session, rows, trials)
    failures = await _failures(session, trials)
    return [
        schemas.experiment(
            row, names[row.user_id], trials[row.id], shown[row.id], await masked(row), failures.get(row.id)
        )
        for row in rows
    ]


async def _failures(session: ReadSession, trials: Mapping[int, Sequence[TrialRow]]) -> dict[int, str]:
    """Returns why the first failed trial of each experiment failed."""
    tasks: dict[str, int] = {}
    for experiment_id, found in trials.items():
        first = next((trial for trial in found if trial.state is TrialState.ERROR), None)
        if first is not None:
            tasks[first.task_id] = experiment_id
    failed = await allocation_rows.newest_failures(session, list(tasks))
    return {tasks[task_id]: row.failure for task_id, row in failed.items() if row.failure is not None}


async def masked(row: ExperimentRow) -> schemas.MaskedConfig:
    """Returns its configuration without secrets, as data and as text."""
    return await _sized(row, schemas.masked_config, row.config, row.original_config)


async def masked_data(row: ExperimentRow) -> dict[str, Any]:
    """Returns its configuration without secrets, as data."""
    return await _sized(row, masking.masked, row.config)


async def _sized(row: ExperimentRow, work: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Calls ``work``; for a long configuration in a thread, one at a time."""
    if len(row.original_config) <= MAX_INLINE_CHARACTERS:
        return work(*arguments)
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(1)
        _limiter.set(limiter)
    return await to_thread.run_sync(work, *arguments, limiter=limiter)


async def displayed(
    session: ReadSession, rows: Sequence[ExperimentRow], trials: dict[int, list[TrialRow]]
) -> dict[int, str]:
    """Returns the displayed state of each experiment by its id."""
    owner = {t.task_id: row.id for row in rows if row.state in _MAY_HOLD_SLOTS for t in trials[row.id]}
    live: dict[int, list[AllocationState]] = defaultdict(list)
    for allocation in await allocation_rows.live_of_tasks(session, list(owner)):
        live[owner[allocation.task_id]].append(allocation.state)
    return {row.id: display_state(row.state, live[row.id]) for row in rows}
