"""Keeps the experiment index up to date in small transactions, less often where updates are expensive."""

import asyncio
import logging
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.exc import OperationalError

from determined.config.masking import without_secrets
from determined.link.isolation import Isolation
from determined_master import notifications
from determined_master.db.models import ExperimentRow, ExperimentSummaryRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.experiment_index import index_repository
from determined_master.experiment_index.cell_values import Key, Value, of_experiment, wider
from determined_master.experiment_index.column_names import Type
from determined_master.experiment_index.index_repository import Count, OfTrial, Totals

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.02
"""Time after which a transaction takes no further experiments; others wait for the write lock meanwhile."""
SHARE = 400
"""An experiment is not updated again for this multiple of the time that its update took, ..."""
MAX_HOLD_BACK_SECONDS = 5.0
"""... within bounds, since everything is slow on a busy machine."""
VALUES_A_SECOND = 200
"""Rate limit for one experiment: each value may be on a page of its own, which is written whole."""


class Indexer:
    """The only writer of indexed values. Marks and values change in one transaction, so a crash loses neither."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._not_before: dict[int, float] = {}
        self._one_at_a_time = asyncio.Lock()
        self._items = Isolation("columns", logger)

    async def catch_up(self, *, at_once: bool = False) -> float | None:
        """Updates all stale experiments that are due. Returns the seconds until the next one is due."""
        async with self._one_at_a_time:
            async with self._database.read() as session:
                stale = await index_repository.stale(session)
            now = time.monotonic()
            self._not_before = {i: due for i, due in self._not_before.items() if due > now}
            ready = [i for i in stale if at_once or i not in self._not_before]
            due = [i for i in ready if at_once or self._items.is_due("experiment", i)]
            while due:
                start = time.monotonic()
                try:
                    due = await self._batch(due)
                except Exception as error:
                    first, due = due[0], due[1:]
                    with self._items.attempt("experiment", first):
                        await self._batch([first])
                    if isinstance(error, OperationalError) and not self._items.is_due("experiment", first):
                        raise  # an error of the database concerns every experiment: the loop backs off
                # Sleeps as long as the lock was held, so that other writers get it.
                await asyncio.sleep(time.monotonic() - start if due else 0)
            held_back = [self._not_before[i] for i in stale if i in self._not_before]
        left = max(0.0, min(held_back) - time.monotonic()) if held_back else None
        return self._items.soonest(left)

    async def _batch(self, due: list[int]) -> list[int]:
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


@dataclass(frozen=True)
class Sources:
    """The trials whose values are shown."""

    shown: OfTrial | None
    """The best trial, else the only one."""
    metrics: OfTrial | None
    """That trial, else the newest."""


def sources(trials: Sequence[OfTrial], *, smaller_is_better: bool) -> Sources:
    """Returns the sources among all trials by id, or among the first, the newest and the best of them."""
    sign = 1 if smaller_is_better else -1
    ranked = [(sign * t.searcher_metric_value, t.id, t) for t in trials if t.searcher_metric_value is not None]
    best = min(ranked)[2] if ranked else None
    shown = best or (trials[0] if len(trials) == 1 else None)
    return Sources(shown, shown or (trials[-1] if trials else None))


async def keep(session: WriteSession, experiment_id: int) -> int:
    """Updates the values in one transaction with the stale marks. Returns the number of compared values."""
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
        count = await _keep_values(session, row, known, found)
    await _keep_summary(session, row, known, of_all, found)
    await index_repository.settle(session, experiment_id, of_all)
    notify(session, notifications.metrics(experiment_id))
    return count


async def drop(session: WriteSession, experiment_id: int) -> None:
    """Removes the values of a deleted experiment."""
    known = await index_repository.summary(session, experiment_id)
    if known is not None:
        held = await index_repository.values(session, experiment_id)
        name_ids = [name_id for name_id, _ in held.values()]
        await _count(session, known.project_id, gone=name_ids)
        await index_repository.drop_values(session, experiment_id, name_ids)
    await index_repository.forget(session, experiment_id)


def _is_touched(known: ExperimentSummaryRow, found: Sources) -> bool:
    """Returns True if the values may have changed since the last update."""
    ids = (found.shown.id if found.shown else None, found.metrics.id if found.metrics else None)
    if ids != (known.trial_id, known.source_trial_id):
        return True
    return any(trial is not None and trial.values_stale for trial in (found.shown, found.metrics))


async def _keep_values(
    session: WriteSession, row: ExperimentRow, known: ExperimentSummaryRow | None, found: Sources
) -> int:
    hparams = await index_repository.hparams(session, found.shown.id) if found.shown else None
    metrics = await index_repository.summary_metrics(session, found.metrics.id) if found.metrics else {}
    new = of_experiment(without_secrets(row.config), hparams, metrics)
    old = await index_repository.values(session, row.id) if known is not None else {}
    fresh = {key: value for key, value in new.items() if key not in old}
    changed = {key: value for key, value in new.items() if key in old and old[key][1] != value}
    gone = [name_id for key, (name_id, _) in old.items() if key not in new]
    ids = await _named(session, fresh | changed)
    by_id = {ids[key]: value for key, value in (fresh | changed).items()}
    await index_repository.add_values(session, row.id, {ids[key]: value for key, value in fresh.items()})
    await index_repository.change_values(session, row.id, {ids[key]: value for key, value in changed.items()})
    await index_repository.drop_values(session, row.id, gone)
    if known is not None and known.project_id != row.project_id:
        await _count(session, known.project_id, gone=[name_id for name_id, _ in old.values()])
        kept = {name_id: value for key, (name_id, value) in old.items() if key in new}
        await _count(session, row.project_id, fresh=kept | by_id)
    else:
        of_new = {ids[key]: value for key, value in fresh.items()}
        of_old = {ids[key]: value for key, value in changed.items()}
        await _count(session, row.project_id, fresh=of_new, changed=of_old, gone=gone)
    if any(key not in old for key in fresh):
        notify(session, notifications.COLUMN_NAMES)
    return len(new)


async def _named(session: WriteSession, values: Mapping[Key, Value]) -> dict[Key, int]:
    names = await index_repository.intern(session, {key: value.type for key, value in values.items()})
    wider_types: dict[int, Type] = {
        name.id: wider(name.type, values[key].type)
        for key, name in names.items()
        if wider(name.type, values[key].type) != name.type
    }
    await index_repository.widen_types(session, wider_types)
    return {key: name.id for key, name in names.items()}


async def _count(
    session: ReadSession,
    project_id: int,
    *,
    fresh: Mapping[int, Value] | None = None,
    changed: Mapping[int, Value] | None = None,
    gone: Collection[int] = (),
) -> None:
    fresh, changed = fresh or {}, changed or {}
    now = await index_repository.counts(session, project_id, {*fresh, *changed, *gone})
    wanted: dict[int, Count] = {}
    for name_id, value in (*fresh.items(), *changed.items()):
        count = now.get(name_id, Count(0, None, None))
        wanted[name_id] = replace(_reaching(count, value.number), count=count.count + (name_id in fresh))
    for name_id in gone:
        count = wanted.get(name_id) or now.get(name_id, Count(1, None, None))
        wanted[name_id] = replace(count, count=max(0, count.count - 1))
    await index_repository.save_counts(session, project_id, {i: c for i, c in wanted.items() if c != now.get(i)})


def _reaching(count: Count, figure: float | None) -> Count:
    if figure is None or not math.isfinite(figure):
        return count
    lowest, highest = count.minimum, count.maximum
    return replace(
        count,
        minimum=figure if lowest is None else min(lowest, figure),
        maximum=figure if highest is None else max(highest, figure),
    )


async def _keep_summary(
    session: WriteSession,
    row: ExperimentRow,
    known: ExperimentSummaryRow | None,
    of_all: Totals,
    found: Sources,
) -> None:
    values = {
        "experiment_id": row.id,
        "project_id": row.project_id,
        "num_trials": of_all.trials,
        "trial_id": found.shown.id if found.shown else None,
        "source_trial_id": found.metrics.id if found.metrics else None,
        "searcher_metric_value": found.shown.searcher_metric_value if found.shown else None,
        "checkpoint_count": of_all.checkpoint_count,
        "checkpoint_size": of_all.checkpoint_size,
        "failure": await index_repository.failure(session, row.id),
    }
    if known is None or any(getattr(known, name) != value for name, value in values.items()):
        await index_repository.save_summary(session, values, known=known is not None)
