"""Indexed values of an experiment: from which trials they are, what changes of them, and how many experiments of a
project have each column."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from determined_master.db.models import ExperimentRow, ExperimentSummaryRow
from determined_master.db.session import WriteSession
from determined_master.experiment_index import index_repository
from determined_master.experiment_index.cell_values import Key, Value, wider
from determined_master.experiment_index.column_names import Type
from determined_master.experiment_index.index_repository import Count, OfTrial, Totals


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


@dataclass(frozen=True)
class Changes:
    """What is to be stored of an experiment's values. ``gone``: ids of names."""

    fresh: Mapping[Key, Value] = field(default_factory=dict)
    changed: Mapping[Key, Value] = field(default_factory=dict)
    gone: Sequence[int] = ()

    @classmethod
    def between(cls, old: Mapping[Key, tuple[int, Value]], new: Mapping[Key, Value]) -> "Changes":
        return cls(
            fresh={key: value for key, value in new.items() if key not in old},
            changed={key: value for key, value in new.items() if key in old and old[key][1] != value},
            gone=[name_id for key, (name_id, _) in old.items() if key not in new],
        )


async def store(session: WriteSession, experiment_id: int, project_id: int, changes: Changes) -> bool:
    """Stores changed values, which count in a project. Returns True if there are new ones."""
    ids = await write(session, experiment_id, changes)
    of_new = {ids[key]: value for key, value in changes.fresh.items()}
    of_old = {ids[key]: value for key, value in changes.changed.items()}
    await count(session, project_id, fresh=of_new, changed=of_old, gone=changes.gone)
    return bool(changes.fresh)


async def write(session: WriteSession, experiment_id: int, changes: Changes) -> dict[Key, int]:
    """Stores values, and returns the ids of their names. Nothing is counted."""
    ids = await _named(session, {**changes.fresh, **changes.changed})
    of_new = {ids[key]: value for key, value in changes.fresh.items()}
    of_old = {ids[key]: value for key, value in changes.changed.items()}
    await index_repository.add_values(session, experiment_id, of_new)
    await index_repository.change_values(session, experiment_id, of_old)
    await index_repository.drop_values(session, experiment_id, changes.gone)
    return ids


async def _named(session: WriteSession, values: Mapping[Key, Value]) -> dict[Key, int]:
    names = await index_repository.intern(session, {key: value.type for key, value in values.items()})
    wider_types: dict[int, Type] = {
        name.id: wider(name.type, values[key].type)
        for key, name in names.items()
        if wider(name.type, values[key].type) != name.type
    }
    await index_repository.widen_types(session, wider_types)
    return {key: name.id for key, name in names.items()}


async def count(
    session: WriteSession,
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
        before = now.get(name_id, Count(0, None, None))
        wanted[name_id] = replace(_reaching(before, value.number), count=before.count + (name_id in fresh))
    for name_id in gone:
        before = wanted.get(name_id) or now.get(name_id, Count(1, None, None))
        wanted[name_id] = replace(before, count=max(0, before.count - 1))
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


async def keep_summary(
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
