"""Updates the experiment index in small transactions, less often where updates are expensive."""

import asyncio
import logging
import time
from collections.abc import Sequence

from determined.config.masking import without_secrets
from determined_master import notifications
from determined_master.db.models import ExperimentRow, ExperimentSummaryRow
from determined_master.db.session import Database, WriteSession, notify
from determined_master.experiment_index import index_repository, indexed_values, large_experiments
from determined_master.experiment_index.cell_values import of_experiment
from determined_master.experiment_index.indexed_values import Changes, Sources, keep_summary, sources
from determined_master.experiment_index.indexed_values import count as count_values

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.02
"""Time after which a transaction takes no further experiments; others wait for the write lock meanwhile."""
SHARE = 400
"""An experiment is not updated again for this multiple of the time that its update took, ..."""
MAX_HOLD_BACK_SECONDS = 5.0
"""... within bounds, since everything is slow on a busy machine."""
VALUES_A_SECOND = 200
"""Rate limit for one experiment: each value may be on a page of its own, which is written whole."""
MAX_AT_END = 1000
"""Changes of values in the transaction that ends an experiment: some 40 ms of the write lock."""


class Indexer:
    """The only writer of indexed values. Marks and values change in one transaction, so a crash loses neither."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._not_before: dict[int, float] = {}
        self.one_at_a_time = asyncio.Lock()
        """Held by whoever updates."""

    async def stale(self) -> Sequence[int]:
        """Returns the ids of the experiments whose values may have changed."""
        async with self._database.read() as session:
            return await index_repository.stale(session)

    def without_held_back(self, stale: Sequence[int]) -> list[int]:
        """Returns the experiments whose last update was long enough ago."""
        now = time.monotonic()
        self._not_before = {i: due for i, due in self._not_before.items() if due > now}
        return [i for i in stale if i not in self._not_before]

    def seconds_left(self, stale: Sequence[int]) -> float | None:
        """Returns the seconds until the first of the experiments that are held back is due; None without one."""
        held_back = [self._not_before[i] for i in stale if i in self._not_before]
        return max(0.0, min(held_back) - time.monotonic()) if held_back else None

    async def large(self, due: Sequence[int]) -> list[int]:
        """Returns those of the experiments whose values do not fit into one transaction."""
        async with self._database.read() as session:
            return [i for i in due if await index_repository.is_large(session, i)]

    async def update_large(self, experiment_id: int) -> None:
        """Updates one experiment, in transactions of a lot each."""
        start = time.monotonic()
        count = await large_experiments.update(self._database, experiment_id)
        rest = min(MAX_HOLD_BACK_SECONDS, SHARE * (time.monotonic() - start))
        self._not_before[experiment_id] = time.monotonic() + max(rest, count / VALUES_A_SECOND)

    async def update_batch(self, due: list[int]) -> list[int]:
        """Updates a batch of experiments and returns the rest of ``due``."""
        taken: list[tuple[int, int, float]] = []
        async with self._database.write() as session:
            start = now = time.monotonic()
            while len(taken) < len(due) and (not taken or now - start < BATCH_SECONDS):
                experiment_id = due[len(taken)]
                count = await keep(session, experiment_id)
                taken.append((experiment_id, count, time.monotonic() - now))
                now = time.monotonic()
        ended = time.monotonic()
        # The commit costs as much again if values are on many pages; each experiment gets its share.
        dearer = (ended - start) / max(now - start, 1e-6)
        for experiment_id, count, seconds in taken:
            rest = min(MAX_HOLD_BACK_SECONDS, SHARE * dearer * seconds)
            self._not_before[experiment_id] = ended + max(rest, count / VALUES_A_SECOND)
        return due[len(taken) :]


async def keep_ended(session: WriteSession, experiment_id: int) -> None:
    """Updates the values in the transaction that ends an experiment, so that whoever sees the end sees its columns.

    The loop does it a moment later for a large one, for one with more changes than ``MAX_AT_END``, and if it fails: an
    experiment that cannot be indexed ends all the same.
    """
    try:
        async with session.begin_nested():
            if not await index_repository.is_large(session, experiment_id):
                await keep(session, experiment_id, most=MAX_AT_END)
    except _TooMany:
        pass
    except Exception:
        logger.exception("the columns of experiment %d were not updated at its end", experiment_id)


class _TooMany(Exception):
    pass


async def keep(session: WriteSession, experiment_id: int, *, most: int | None = None) -> int:
    """Updates the values in one transaction with the stale marks. Returns the number of compared values. Raises
    _TooMany for more than ``most`` changes."""
    row = await index_repository.experiment(session, experiment_id)
    of_all = await index_repository.totals(session, experiment_id)
    if row is None:
        await drop(session, experiment_id)
        await index_repository.settle(session, experiment_id, of_all)
        return 0
    known = await index_repository.summary(session, experiment_id)
    smaller = row.smaller_is_better
    telling = await index_repository.telling_trials(session, experiment_id, of_all, smaller_is_better=smaller)
    found = sources(telling, smaller_is_better=smaller)
    count = 0
    if row.values_stale or known is None or _is_touched(known, found):
        count = await _keep_values(session, row, known, found, most)
    await keep_summary(session, row, known, of_all, found)
    await index_repository.settle(session, experiment_id, of_all)
    notify(session, notifications.metrics(experiment_id))
    return count


async def drop_some(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Removes ``most`` values of an experiment and returns their number; none of one that has fewer: ``drop`` removes
    them with the experiment."""
    known = await index_repository.summary(session, experiment_id)
    name_ids = await index_repository.some_name_ids(session, experiment_id, most) if known is not None else []
    if known is None or (most is not None and len(name_ids) < most):
        return 0
    await count_values(session, known.project_id, gone=name_ids)
    await index_repository.drop_values(session, experiment_id, name_ids)
    return len(name_ids)


async def drop(session: WriteSession, experiment_id: int) -> None:
    """Removes the values of a deleted experiment."""
    await drop_some(session, experiment_id, None)
    await index_repository.forget(session, experiment_id)


def _is_touched(known: ExperimentSummaryRow, found: Sources) -> bool:
    """Returns True if the values may have changed since the last update."""
    ids = (found.shown.id if found.shown else None, found.metrics.id if found.metrics else None)
    if ids != (known.trial_id, known.source_trial_id):
        return True
    return any(trial is not None and trial.values_stale for trial in (found.shown, found.metrics))


async def _keep_values(
    session: WriteSession, row: ExperimentRow, known: ExperimentSummaryRow | None, found: Sources, most: int | None
) -> int:
    hparams = await index_repository.hparams(session, found.shown.id) if found.shown else None
    metrics = await index_repository.summary_metrics(session, found.metrics.id) if found.metrics else {}
    new = of_experiment(without_secrets(row.config), hparams, metrics)
    old = await index_repository.values(session, row.id) if known is not None else {}
    changes = Changes.between(old, new)
    if most is not None and len(changes.fresh) + len(changes.changed) + len(changes.gone) > most:
        raise _TooMany
    if known is not None and known.project_id != row.project_id:
        ids = await indexed_values.write(session, row.id, changes)
        await count_values(session, known.project_id, gone=[name_id for name_id, _ in old.values()])
        kept = {name_id: value for key, (name_id, value) in old.items() if key in new}
        written = {ids[key]: value for key, value in (*changes.fresh.items(), *changes.changed.items())}
        await count_values(session, row.project_id, fresh=kept | written)
    else:
        await indexed_values.store(session, row.id, row.project_id, changes)
    if changes.fresh:
        notify(session, notifications.COLUMN_NAMES)
    return len(new)
