"""SQL that writes the indexed values of experiments."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, BindParameter, Text, bindparam, case, cast, delete, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from determined.states import ExperimentState, TrialState
from determined_master.db.models import (
    AllocationRow,
    ColumnCountRow,
    ColumnNameRow,
    ColumnValueRow,
    ExperimentLabelRow,
    ExperimentRow,
    ExperimentSummaryRow,
    TrialRow,
)
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.statements.prepared import Prepared
from determined_master.experiment_index.cell_values import Key, Value
from determined_master.experiment_index.column_names import Type

A, E, T, S = AllocationRow, ExperimentRow, TrialRow, ExperimentSummaryRow
# Tables of SQLAlchemy Core: the ORM is too slow for thousands of rows at a time.
_N = table_of(ColumnNameRow)
_V = table_of(ColumnValueRow)
_C = table_of(ColumnCountRow)
_E = table_of(ExperimentRow)
_T = table_of(TrialRow)
_S = table_of(ExperimentSummaryRow)
_BATCH_ROWS = 500
_CHANGE: Prepared[()] = Prepared(
    update(_V)
    .where(_V.c.name_id == bindparam("of_name"), _V.c.experiment_id == bindparam("of_experiment"))
    .values({name: bindparam(f"new_{name}") for name in Value.__slots__})
)
_DROP: Prepared[()] = Prepared(
    delete(_V).where(_V.c.name_id == bindparam("of_name"), _V.c.experiment_id == bindparam("of_experiment"))
)


class Name(NamedTuple):
    id: int
    type: Type


@dataclass(frozen=True)
class Count:
    count: int
    minimum: float | None
    maximum: float | None


class OfTrial(NamedTuple):
    """Columns of a trial for the summary: without its metrics, which may be long."""

    id: int
    searcher_metric_value: float | None
    checkpoint_count: int
    checkpoint_size: int
    values_stale: bool


async def stale(session: ReadSession) -> list[int]:
    """Returns stale experiments, oldest first."""
    of_trials = select(T.experiment_id).where(T.values_stale)
    return sorted(await session.scalars(select(E.id).where(E.values_stale).union(of_trials)))


async def experiment(session: ReadSession, experiment_id: int) -> ExperimentRow | None:
    """Returns None for a deleted experiment."""
    row = await session.get(E, experiment_id)
    return None if row is None or row.state is ExperimentState.DELETED else row


LARGE_CONFIG_CHARACTERS = 64_000
LARGE_METRICS_CHARACTERS = 250_000
LARGE_TRIALS = 20_000


async def is_large(session: ReadSession, experiment_id: int) -> bool:
    """Returns True for an experiment whose values one transaction should not compare and store."""
    return bool(await _IS_LARGE.first(session, experiment_id=experiment_id))


def _is_large() -> Any:  # noqa: ANN401  # a condition
    own: BindParameter[int] = bindparam("experiment_id")
    metrics = func.length(cast(T.summary_metrics, Text)) > LARGE_METRICS_CHARACTERS
    source = select(S.source_trial_id).where(S.experiment_id == own).scalar_subquery()
    return or_(
        select(E.id).where(E.id == own, func.length(cast(E.config, Text)) > LARGE_CONFIG_CHARACTERS).exists(),
        select(S.experiment_id).where(S.experiment_id == own, S.num_trials > LARGE_TRIALS).exists(),
        select(T.id).where(T.id == source, metrics).exists(),
        select(T.id).where(T.experiment_id == own, T.values_stale, metrics).exists(),
    )


_IS_LARGE = Prepared(select(_is_large()))


async def move_marks(session: WriteSession, experiment_id: int, most: int) -> int:
    """Moves up to ``most`` marks of stale trials to their experiment, and returns their number."""
    some = select(_T.c.id).where(_T.c.experiment_id == experiment_id, _T.c.values_stale).limit(most)
    # Not with the rows: they would be fetched one by one, each waiting for a busy event loop.
    moved = await session.execute(update(_T).where(_T.c.id.in_(some)).values(values_stale=False))
    await session.execute(update(_E).where(_E.c.id == experiment_id).values(values_stale=True))
    return int(moved.rowcount)  # type: ignore[attr-defined]


async def clear_mark(session: WriteSession, experiment_id: int) -> None:
    await session.execute(update(_E).where(_E.c.id == experiment_id).values(values_stale=False))


class Totals(NamedTuple):
    """Of all trials of an experiment."""

    trials: int
    checkpoint_count: int
    checkpoint_size: int
    first_id: int | None
    last_id: int | None
    stale: int
    """Number of trials with a stale mark."""


async def totals(session: ReadSession, experiment_id: int) -> Totals:
    return Totals(*(await _TOTALS.rows(session, experiment_id=experiment_id))[0])


def _sum(column: Any) -> Any:  # noqa: ANN401  # a column and its sum as a whole number
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


_TOTALS = Prepared(
    select(func.count(), _sum(T.checkpoint_count), _sum(T.checkpoint_size), func.min(T.id), func.max(T.id))
    .add_columns(_sum(case((T.values_stale, 1), else_=0)))
    .where(T.experiment_id == bindparam("experiment_id"))
)


async def telling_trials(
    session: ReadSession, experiment_id: int, of_all: Totals, *, smaller_is_better: bool
) -> list[OfTrial]:
    """Returns the first trial, the newest and the best, by id: an experiment may have very many."""
    values = {"experiment_id": experiment_id, "first_id": of_all.first_id, "last_id": of_all.last_id}
    return [OfTrial(*row) for row in await _TELLING[smaller_is_better].rows(session, **values)]


def _telling(*, smaller_is_better: bool) -> Prepared[int, float | None, int, int, bool]:
    value = T.searcher_metric_value
    best = (
        select(T.id)
        .where(T.experiment_id == bindparam("experiment_id"), value.is_not(None))
        .order_by(value if smaller_is_better else value.desc(), T.id)
        .limit(1)
    )
    return Prepared(
        select(T.id, value, T.checkpoint_count, T.checkpoint_size, T.values_stale)
        .where(or_(T.id.in_([bindparam("first_id"), bindparam("last_id")]), T.id == best.scalar_subquery()))
        .order_by(T.id)
    )


_TELLING = {smaller: _telling(smaller_is_better=smaller) for smaller in (False, True)}


async def failure(session: ReadSession, experiment_id: int) -> str | None:
    """Returns the cause of the first failed trial's last failure."""
    return await _FAILURE.first(session, experiment_id=experiment_id)


_FAILURE = Prepared(
    select(A.failure)
    .join(T, T.task_id == A.task_id)
    .where(T.experiment_id == bindparam("experiment_id"), T.state == TrialState.ERROR, A.failure.is_not(None))
    .order_by(T.id, A.run_id.desc())
    .limit(1)
)


async def hparams(session: ReadSession, trial_id: int) -> dict[str, Any]:
    found: dict[str, Any] = (await session.execute(select(T.hparams).where(T.id == trial_id))).scalar_one()
    return found


async def summary_metrics(session: ReadSession, trial_id: int) -> dict[str, Any]:
    found: dict[str, Any] = (await session.execute(select(T.summary_metrics).where(T.id == trial_id))).scalar_one()
    return found


async def summary(session: ReadSession, experiment_id: int) -> ExperimentSummaryRow | None:
    return await session.get(S, experiment_id)


async def save_summary(session: WriteSession, values: Mapping[str, Any], *, known: bool) -> None:
    if known:
        await session.execute(update(_S).where(_S.c.experiment_id == values["experiment_id"]).values(values))
    else:
        await session.execute(insert(_S).values(values))


async def settle(session: WriteSession, experiment_id: int, of_all: Totals) -> None:
    """Clears the stale marks, in the transaction that read the marked rows."""
    await session.execute(update(_E).where(_E.c.id == experiment_id, _E.c.values_stale).values(values_stale=False))
    if of_all.stale:
        of_it = update(_T).where(_T.c.experiment_id == experiment_id, _T.c.values_stale)
        await session.execute(of_it.values(values_stale=False))


async def values(session: ReadSession, experiment_id: int) -> dict[Key, tuple[int, Value]]:
    query: Any = (
        select(_N.c.kind, _N.c.name, _N.c.id, *(_V.c[name] for name in Value.__slots__))
        .join(_N, _N.c.id == _V.c.name_id)
        .where(_V.c.experiment_id == experiment_id)
    )
    found: Any = await session.execute(query)
    return {(row[0], row[1]): (row[2], Value(*row[3:])) for row in found}


async def some_name_ids(session: ReadSession, experiment_id: int, most: int | None) -> list[int]:
    """Returns the ids of the names of up to ``most`` values of an experiment."""
    query = select(_V.c.name_id).where(_V.c.experiment_id == experiment_id).limit(most)
    return list((await session.execute(query)).scalars())


async def intern(session: WriteSession, wanted: Mapping[Key, Type]) -> dict[Key, Name]:
    """Returns the ids of the names; adds missing names."""
    names = await _named(session, wanted)
    missing = [key for key in wanted if key not in names]
    if missing:
        rows = [{"kind": kind, "name": name, "type": wanted[kind, name]} for kind, name in missing]
        await session.execute(insert(_N), rows)
        names |= await _named(session, missing)
    return names


async def _named(session: ReadSession, keys: Iterable[Key]) -> dict[Key, Name]:
    wanted = set(keys)
    names = sorted({name for _, name in wanted})
    names_by_key: dict[Key, Name] = {}
    for start in range(0, len(names), _BATCH_ROWS):
        query = select(_N.c.kind, _N.c.name, _N.c.id, _N.c.type).where(
            _N.c.name.in_(names[start : start + _BATCH_ROWS])
        )
        for kind, name, name_id, type_ in await session.execute(query):
            names_by_key[kind, name] = Name(name_id, type_)
    return {key: name for key, name in names_by_key.items() if key in wanted}


async def widen_types(session: WriteSession, types: Mapping[int, Type]) -> None:
    for name_id, type_ in types.items():
        await session.execute(update(_N).where(_N.c.id == name_id).values(type=type_))


async def add_values(session: WriteSession, experiment_id: int, fresh: Mapping[int, Value]) -> None:
    if fresh:
        rows = [
            {"name_id": name_id, "experiment_id": experiment_id} | {s: getattr(value, s) for s in Value.__slots__}
            for name_id, value in sorted(fresh.items())
        ]
        await session.execute(insert(_V), rows)


async def change_values(session: WriteSession, experiment_id: int, changed: Mapping[int, Value]) -> None:
    if changed:
        rows = [
            {"of_name": name_id, "of_experiment": experiment_id}
            | {f"new_{s}": getattr(value, s) for s in Value.__slots__}
            for name_id, value in sorted(changed.items())
        ]
        await _CHANGE.execute(session, rows)


async def drop_values(session: WriteSession, experiment_id: int, name_ids: Collection[int]) -> None:
    if name_ids:
        rows = [{"of_name": name_id, "of_experiment": experiment_id} for name_id in sorted(name_ids)]
        await _DROP.execute(session, rows)


async def counts(session: ReadSession, project_id: int, name_ids: Collection[int]) -> dict[int, Count]:
    by_name: dict[int, Count] = {}
    wanted = sorted(name_ids)
    for start in range(0, len(wanted), _BATCH_ROWS):
        query = select(_C.c.name_id, _C.c.count, _C.c.minimum, _C.c.maximum).where(
            _C.c.project_id == project_id, _C.c.name_id.in_(wanted[start : start + _BATCH_ROWS])
        )
        by_name |= {row[0]: Count(*row[1:]) for row in await session.execute(query)}
    return by_name


async def save_counts(session: WriteSession, project_id: int, changed: Mapping[int, Count]) -> None:
    if not changed:
        return
    on_postgres = session.get_bind().dialect.name == "postgresql"
    statement = postgresql.insert(_C) if on_postgres else sqlite.insert(_C)
    whole = statement.on_conflict_do_update(
        index_elements=[_C.c.project_id, _C.c.name_id],
        set_={name: statement.excluded[name] for name in ("count", "minimum", "maximum")},
    )
    rows = [{"project_id": project_id, "name_id": i} | asdict(count) for i, count in sorted(changed.items())]
    await session.execute(whole, rows)


async def forget(session: WriteSession, experiment_id: int) -> None:
    """Deletes everything but its values, which have to be taken out of the counts first."""
    await session.execute(delete(_S).where(_S.c.experiment_id == experiment_id))
    await session.execute(delete(ExperimentLabelRow).where(ExperimentLabelRow.experiment_id == experiment_id))
