"""SQL for totals over the trials of experiments: counts, best trials, failures, live allocations."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, case, func, select

from determined.states import AllocationState, TrialState
from determined_master.allocations.repository import LIVE
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.batches import batched

MAX_IDS_A_STATEMENT = 10_000


@dataclass
class TrialTotals:
    """Totals of one experiment."""

    trial_ids: list[int]
    """In ascending order."""
    checkpoint_count: int = 0
    checkpoint_size: int = 0
    best_trial_id: int | None = None
    """The trial with the best searcher metric, of equal ones the first; None without any metric."""
    best_metric: float | None = None
    first_failed_task: str | None = None
    """Task of the first trial that failed."""


async def totals(session: ReadSession, experiment_ids: Collection[int]) -> dict[int, TrialTotals]:
    """Returns the totals of each experiment, also of those without trials."""
    totals_by_id = {experiment_id: TrialTotals([]) for experiment_id in experiment_ids}
    for batch in batched(list(totals_by_id), MAX_IDS_A_STATEMENT):
        for experiment_id, trial_id in await session.execute(_TRIALS, {"ids": batch}):
            totals_by_id[experiment_id].trial_ids.append(trial_id)
        await _add_sums(session, totals_by_id, batch)
        await _add_best(session, totals_by_id, batch)
        await _add_first_failed(session, totals_by_id, batch)
    return totals_by_id


_OF_THESE = TrialRow.experiment_id.in_(bindparam("ids", expanding=True))
"""Statements are built once: building them costs more than executing them, and lists are shown often."""
_TRIALS = select(TrialRow.experiment_id, TrialRow.id).where(_OF_THESE).order_by(TrialRow.id)
_SUMS = (
    select(TrialRow.experiment_id, func.sum(TrialRow.checkpoint_count), func.sum(TrialRow.checkpoint_size))
    .where(_OF_THESE)
    .group_by(TrialRow.experiment_id)
)


async def _add_sums(session: ReadSession, found: dict[int, TrialTotals], ids: Collection[int]) -> None:
    for experiment_id, checkpoints, total_bytes in await session.execute(_SUMS, {"ids": ids}):
        found[experiment_id].checkpoint_count = int(checkpoints)
        found[experiment_id].checkpoint_size = int(total_bytes)


def _best() -> Select[int, int, float | None]:
    value = TrialRow.searcher_metric_value
    better = case((ExperimentRow.smaller_is_better, value), else_=-value)
    rank = func.row_number().over(partition_by=TrialRow.experiment_id, order_by=(better, TrialRow.id))
    ranked = (
        select(TrialRow.experiment_id, TrialRow.id, value, rank.label("rank"))
        .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
        .where(_OF_THESE, value.is_not(None))
        .subquery()
    )
    return select(ranked.c.experiment_id, ranked.c.id, ranked.c.searcher_metric_value).where(ranked.c.rank == 1)


_BEST = _best()


async def _add_best(session: ReadSession, found: dict[int, TrialTotals], ids: Collection[int]) -> None:
    for experiment_id, trial_id, metric in await session.execute(_BEST, {"ids": ids}):
        found[experiment_id].best_trial_id = trial_id
        found[experiment_id].best_metric = metric


_FIRST_FAILED = (
    select(func.min(TrialRow.id)).where(_OF_THESE, TrialRow.state == TrialState.ERROR).group_by(TrialRow.experiment_id)
)
_FIRST_FAILED_TASKS = select(TrialRow.experiment_id, TrialRow.task_id).where(TrialRow.id.in_(_FIRST_FAILED))


async def _add_first_failed(session: ReadSession, found: dict[int, TrialTotals], ids: Collection[int]) -> None:
    for experiment_id, task_id in await session.execute(_FIRST_FAILED_TASKS, {"ids": ids}):
        found[experiment_id].first_failed_task = task_id


_LIVE_STATES = (
    select(TrialRow.experiment_id, AllocationRow.state)
    .join(AllocationRow, AllocationRow.task_id == TrialRow.task_id)
    .where(_OF_THESE, AllocationRow.state.in_(LIVE))
    .distinct()
)


async def live_allocation_states(
    session: ReadSession, experiment_ids: Collection[int]
) -> dict[int, set[AllocationState]]:
    """Returns the states of the live allocations of each experiment; experiments without any are absent."""
    found: dict[int, set[AllocationState]] = {}
    for batch in batched(list(experiment_ids), MAX_IDS_A_STATEMENT):
        for experiment_id, state in await session.execute(_LIVE_STATES, {"ids": batch}):
            found.setdefault(experiment_id, set()).add(state)
    return found
