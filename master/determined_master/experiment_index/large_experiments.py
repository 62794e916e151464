"""Keeps the index of an experiment with very many values or trials up to date, in transactions of a lot each.

What is to change is read and compared before them: the indexer is the only writer of indexed values. The marks of the
trials go first, but that of the experiment stays until all values are stored, so a crash loses none.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from determined.config.masking import without_secrets
from determined_master import notifications
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.db.statements.batches import batched
from determined_master.experiment_index import index_repository, indexed_values
from determined_master.experiment_index.cell_values import Key, Value, of_experiment
from determined_master.experiment_index.index_repository import Totals
from determined_master.experiment_index.indexed_values import Changes, Sources

VALUES_A_LOT = 2000
MARKS_A_LOT = 5000


@dataclass(frozen=True)
class _UpdatePlan:
    row: ExperimentRow
    of_all: Totals
    found: Sources
    lots: Sequence[Changes]
    project_id: int
    """The project in which the values count, which differs from that of the row until it has none any more."""
    values: int
    is_new: bool


async def update(database: Database, experiment_id: int) -> int:
    """Updates all values. Returns their number."""
    while not await _take_marks(database, experiment_id):
        pass
    while True:
        async with database.read() as session:
            plan = await _planned(session, experiment_id)
        if plan is None:
            return 0
        if plan.is_new:
            # First: it says in which project the values count.
            async with database.write() as session:
                await indexed_values.keep_summary(session, plan.row, None, plan.of_all, plan.found)
        for lot in plan.lots:
            async with database.write() as session:
                if await index_repository.experiment(session, experiment_id) is None:
                    return 0
                if await indexed_values.store(session, experiment_id, plan.project_id, lot):
                    notify(session, notifications.COLUMN_NAMES)
        async with database.write() as session:
            if await _finish(session, plan):
                return plan.values


async def _take_marks(database: Database, experiment_id: int) -> bool:
    """Moves marks of trials to their experiment. Returns False if there may be more."""
    async with database.write() as session:
        return await index_repository.move_marks(session, experiment_id, MARKS_A_LOT) < MARKS_A_LOT


async def _planned(session: ReadSession, experiment_id: int) -> _UpdatePlan | None:
    row = await index_repository.experiment(session, experiment_id)
    if row is None:
        return None
    of_all = await index_repository.totals(session, experiment_id)
    smaller = row.smaller_is_better
    telling = await index_repository.telling_trials(session, experiment_id, of_all, smaller_is_better=smaller)
    trial_sources = indexed_values.sources(telling, smaller_is_better=smaller)
    hparams = await index_repository.hparams(session, trial_sources.shown.id) if trial_sources.shown else None
    metrics = await index_repository.summary_metrics(session, trial_sources.metrics.id) if trial_sources.metrics else {}
    old = await index_repository.values(session, experiment_id)
    known = await index_repository.summary(session, experiment_id)
    project_id = known.project_id if known is not None and old else row.project_id
    config = row.config
    is_moving = project_id != row.project_id

    def compared() -> tuple[Mapping[Key, Value], list[Changes]]:
        new = {} if is_moving else of_experiment(without_secrets(config), hparams, metrics)
        return new, _in_lots(Changes.between(old, new))

    new, lots = await asyncio.to_thread(compared)
    return _UpdatePlan(row, of_all, trial_sources, lots, project_id, len(new), known is None)


def _in_lots(changes: Changes) -> list[Changes]:
    lots = [Changes(fresh=dict(some)) for some in batched(list(changes.fresh.items()), VALUES_A_LOT)]
    lots += [Changes(changed=dict(some)) for some in batched(list(changes.changed.items()), VALUES_A_LOT)]
    return lots + [Changes(gone=list(some)) for some in batched(changes.gone, VALUES_A_LOT)]


async def _finish(session: WriteSession, plan: _UpdatePlan) -> bool:
    """Stores the summary. Returns False if the values are still to be stored, in the project to which it has moved."""
    row = await index_repository.experiment(session, plan.row.id)
    if row is None:
        return True
    if plan.values and plan.project_id != row.project_id:
        return False  # moved meanwhile: the summary goes on to name the project in which the values count
    known = await index_repository.summary(session, row.id)
    await indexed_values.keep_summary(session, row, known, plan.of_all, plan.found)
    notify(session, notifications.metrics(row.id))
    if plan.project_id != row.project_id:
        return False
    if row.config == plan.row.config:
        await index_repository.clear_mark(session, row.id)
    return True
