"""SQL for totals over the trials of experiments: counts, best trials, failures, live allocations."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import case, func, select

from determined.states import AllocationState, TrialState
from determined_master.allocations.repository import LIVE
from determined_master.db.batches import batched
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.db.session import ReadSession

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
    found = {experiment_id: TrialTotals([]) for experiment_id in experiment_ids}
    for batch in batched(list(found), MAX_IDS_A_STATEMENT):
        ids = select(TrialRow.experiment_id, TrialRow.id).where(TrialRow.experiment_id.in_(batch))
        for experiment_id, trial_id in await session.execute(ids.order_by(TrialRow.id)):
            found[experiment_id].trial_ids.append(trial_id)
        await _add_sums(session, found, batch)
        await _add_best(session, found, batch)
        await _add_first_failed(session, found, batch)
    return found


async def _add_sums(session: ReadSession, found: dict[int, TrialTotals], ids: Collection[int]) -> None:
    count, size = func.sum(TrialRow.checkpoint_count), func.sum(TrialRow.checkpoint_size)
    query = select(TrialRow.experiment_id, count, size).where(TrialRow.experiment_id.in_(ids))
    for experiment_id, checkpoints, total_bytes in await session.execute(query.group_by(TrialRow.experiment_id)):
        found[experiment_id].checkpoint_count = int(checkpoints)
        found[experiment_id].checkpoint_size = int(total_bytes)


async def _add_best(session: ReadSession, found: dict[int, TrialTotals], ids: Collection[int]) -> None:
    value = TrialRow.searcher_metric_value
    better = case((ExperimentRow.smaller_is_better, value), else_=-value)
    rank = func.row_number().over(partition_by=TrialRow.experiment_id, order_by=(better, TrialRow.id))
    ranked = (
        select(TrialRow.experiment_id, TrialRow.id, value, rank.label("rank"))
        .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
        .where(TrialRow.experiment_id.in_(ids), value.is_not(None))
        .subquery()
    )
    first = select(ranked.c.experiment_id, ranked.c.id, ranked.c.searcher_metric_value).where(ranked.c.rank == 1)
    for experiment_id, trial_id, metric in await session.execute(first):
        found[experiment_id].best_trial_id = trial_id
        found[experiment_id].best_metric = metric


async def _add_first_failed(session: ReadSession, found: dict[int, TrialTotals], ids: Collection[int]) -> None:
    first = (
        select(func.min(TrialRow.id))
        .where(TrialRow.experiment_id.in_(ids), TrialRow.state == TrialState.ERROR)
        .group_by(TrialRow.experiment_id)
    )
    query = select(TrialRow.experiment_id, TrialRow.task_id).where(TrialRow.id.in_(first))
    for experiment_id, task_id in await session.execute(query):
        found[experiment_id].first_failed_task = task_id


async def live_allocation_states(
    session: ReadSession, experiment_ids: Collection[int]
) -> dict[int, set[AllocationState]]:
    """Returns the states of the live allocations of each experiment; experiments without any are absent."""
    found: dict[int, set[AllocationState]] = {}
    for batch in batched(list(experiment_ids), MAX_IDS_A_STATEMENT):
        query = (
            select(TrialRow.experiment_id, AllocationRow.state)
            .join(AllocationRow, AllocationRow.task_id == TrialRow.task_id)
            .where(TrialRow.experiment_id.in_(batch), AllocationRow.state.in_(LIVE))
            .distinct()
        )
        for experiment_id, state in await session.execute(query):
            found.setdefault(experiment_id, set()).add(state)
    return found
