"""Loads experiments with the totals of their trials, in one query per kind."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, TypeVarTuple

from determined.states import ExperimentState
from determined_master.allocations import environment_wait_repository
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import experiments as schemas
from determined_master.db.models import ExperimentRow
from determined_master.db.session import ReadSession
from determined_master.offloading.offloader import MAX_INLINE_CHARACTERS
from determined_master.offloading.threads import Threads
from determined_master.states.display_state import display_state
from determined_master.trials import health_queries, totals_queries
from determined_master.trials.totals_queries import TrialTotals
from determined_master.users import list_queries as user_lists

R = TypeVar("R")
Ts = TypeVarTuple("Ts")
_MAY_HOLD_SLOTS = (ExperimentState.ACTIVE, ExperimentState.PAUSED)
_threads = Threads("masking configurations", 1)


async def show(
    session: ReadSession, rows: Sequence[ExperimentRow], now: datetime | None = None
) -> list[schemas.Experiment]:
    """Returns the wire models. With the time ``now`` they have notes on running trials."""
    totals = await totals_queries.totals(session, [row.id for row in rows])
    names = await user_lists.usernames(session, {row.user_id for row in rows})
    shown = await displayed(session, rows)
    failures = await _failures(session, totals)
    active = [row.id for row in rows if row.state is ExperimentState.ACTIVE]
    notes = {} if now is None else await health_queries.notes(session, active, now)
    return [
        schemas.experiment(
            row,
            names[row.user_id],
            totals[row.id],
            shown[row.id],
            await masked(row),
            failures.get(row.id),
            notes.get(row.id),
        )
        for row in rows
    ]


async def _failures(session: ReadSession, totals: Mapping[int, TrialTotals]) -> dict[int, str]:
    """Returns why the first failed trial of each experiment failed."""
    tasks = {of.first_failed_task: i for i, of in totals.items() if of.first_failed_task is not None}
    failed = await allocation_rows.newest_failures(session, list(tasks))
    return {tasks[task_id]: row.failure for task_id, row in failed.items() if row.failure is not None}


async def masked(row: ExperimentRow) -> schemas.MaskedConfig:
    """Returns its configuration without secrets, as data and as text."""
    return await _sized(row, schemas.masked_config, row.config, row.original_config)


async def masked_data(row: ExperimentRow) -> dict[str, Any]:
    """Returns its configuration without secrets, as data."""
    return await _sized(row, schemas.shown_config, row.config)


async def _sized(row: ExperimentRow, work: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Calls ``work``; for a long configuration in a thread, one at a time."""
    if len(row.original_config) <= MAX_INLINE_CHARACTERS:
        return work(*arguments)
    return await _threads.run(work, *arguments)


async def displayed(session: ReadSession, rows: Sequence[ExperimentRow]) -> dict[int, str]:
    """Returns the displayed state of each experiment by its id."""
    holding = [row.id for row in rows if row.state in _MAY_HOLD_SLOTS]
    live = await totals_queries.live_allocation_states(session, holding)
    building = await environment_wait_repository.experiments_waiting(session, holding)
    return {row.id: display_state(row.state, live.get(row.id, ()), is_building=row.id in building) for row in rows}
