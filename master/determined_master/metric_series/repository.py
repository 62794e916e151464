"""SQL for packed points and for reports that are not packed yet."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)

from determined.states import ExperimentState, TrialState
from determined_master.db.models import ChunkRow, ExperimentRow, MetricRow, SeriesCursorRow, SeriesRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.statements.batches import batched
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import delete_rows
from determined_master.metric_series.series_points import Axis

# Tables of SQLAlchemy Core: the ORM costs more than the database.
_M = table_of(MetricRow)
_S = table_of(SeriesRow)
_K = table_of(ChunkRow)
_C = table_of(SeriesCursorRow)
_T = table_of(TrialRow)
_GONE = (ExperimentState.DELETING, ExperimentState.DELETED)
_ENDED = [s for s in TrialState if s.is_terminal]
MAX_RUNS = 200
BATCH_ROWS = 500
"""Values per IN: SQLite takes some ten thousand variables, and PostgreSQL plans long lists slowly."""


class Cursor(NamedTuple):
    """A trial and how far its reports are packed."""

    trial_id: int
    run_id: int
    packed_id: int
    packed_run: int


class StoredSeries(NamedTuple):
    """A series."""

    id: int
    trial_id: int
    group: str
    name: str
    points: int
    packed_id: int


class Report(NamedTuple):
    id: int
    run_id: int
    group: str
    steps: int | None
    time: int
    """Time in microseconds."""
    metrics: dict[str, Any]


class Extent(NamedTuple):
    """Columns of a chunk without its points."""

    series_id: int
    place: int
    points: int
    least: float
    most: float
    """Bounds of x."""
    epochs: int


_CURSOR = (
    _T.c.id,
    _T.c.run_id,
    func.coalesce(_C.c.packed_id, 0).label("packed_id"),
    func.coalesce(_C.c.packed_run, 0).label("packed_run"),
)
_WITH_CURSOR = _T.outerjoin(_C, _C.c.trial_id == _T.c.id)


async def cursors(session: ReadSession, trial_ids: Collection[int]) -> dict[int, Cursor]:
    """Returns the existing trials, without those of experiments that are deleted or being deleted."""
    cursors_found: dict[int, Cursor] = {}
    experiments = table_of(ExperimentRow)
    for ids in batched(sorted(trial_ids), BATCH_ROWS):
        query = (
            select(*_CURSOR)
            .select_from(_WITH_CURSOR.join(experiments, experiments.c.id == _T.c.experiment_id))
            .where(_T.c.id.in_(ids), experiments.c.state.not_in(_GONE))
        )
        cursors_found |= {row[0]: Cursor(*row) for row in (await session.execute(query)).all()}
    return cursors_found


def _waiting() -> list[ScalarSelect[int]]:
    """Returns how many reports a trial has beyond its cursor: of the run at it, and of later ones. Counted separately,
    because the index is ordered by (trial, run, id)."""
    run, beyond = func.coalesce(_C.c.packed_run, 0), _M.c.id > func.coalesce(_C.c.packed_id, 0)
    return [
        select(func.count())
        .select_from(_M)
        .where(_M.c.trial_id == _T.c.id, beyond, own)
        .correlate(_T, _C)
        .scalar_subquery()
        for own in (_M.c.run_id == run, _M.c.run_id > run)
    ]


class TrialToPack(NamedTuple):
    trial: Cursor
    has_ended: bool
    waiting: int
    """Number of reports beyond the cursor."""


async def due(session: ReadSession, least: int, most: int, after: int) -> list[TrialToPack]:
    """Returns trials with ``least`` reports beyond their cursor, and ended ones that are not packed completely.
    Round-robin: those beyond the id ``after`` come first."""
    of_run, later = _waiting()
    has_ended = _T.c.state.in_(_ENDED)
    query = (
        select(*_CURSOR, has_ended, of_run + later)
        .select_from(_WITH_CURSOR)
        .where(func.coalesce(_C.c.done_run, -1) != _T.c.run_id, or_(has_ended, of_run + later >= least))
        .order_by(_T.c.id <= after, _T.c.id)
        .limit(most)
    )
    return [TrialToPack(Cursor(*row[:4]), bool(row[4]), row[5]) for row in (await session.execute(query)).all()]


async def newest_report(session: ReadSession) -> int:
    return (await session.execute(select(func.max(_M.c.id)))).scalar_one() or 0


async def with_news(session: ReadSession, trials: Sequence[Cursor]) -> list[Cursor]:
    """Returns the trials that have reports beyond their cursor."""
    of_run, later = _waiting()
    query = select(_T.c.id).select_from(_WITH_CURSOR)
    query = query.where(_T.c.id.in_([trial.trial_id for trial in trials]), of_run + later > 0)
    found = set((await session.scalars(query)).all())
    return [trial for trial in trials if trial.trial_id in found]


async def last_of_page(session: ReadSession, trial: Cursor, most: int) -> tuple[int, int | None]:
    """Returns the number of up to ``most`` reports beyond the cursor, archived ones included, and the last one's id."""
    page = select(_M.c.id).where(_beyond(trial, trial.packed_id)).order_by(_M.c.id).limit(most).subquery()
    count, last = (await session.execute(select(func.count(), func.max(page.c.id)))).one()
    return int(count), last


async def reports(
    session: ReadSession, trial: Cursor, after: int, until: int | None, groups: Collection[str], most: int
) -> list[Report]:
    """Returns reports that are not archived, by id."""
    query = select(
        _M.c.id, _M.c.run_id, _M.c.group, _M.c.steps, type_coerce(_M.c.reported_at, BigInteger), _M.c.metrics
    ).where(_beyond(trial, after), _M.c.archived.is_(False))
    if until is not None:
        query = query.where(_M.c.id <= until)
    if groups:
        query = query.where(_M.c.group.in_(groups))
    return [Report(*row) for row in (await session.execute(query.order_by(_M.c.id).limit(most))).all()]


def _beyond(trial: Cursor, after: int) -> ColumnElement[bool]:
    """Selects reports by (trial, run) and id, as the index is ordered, so that a trial's other reports are not read."""
    if trial.run_id - trial.packed_run > MAX_RUNS:
        runs = _M.c.run_id >= trial.packed_run
    else:
        runs = _M.c.run_id.in_(range(trial.packed_run, max(trial.run_id, trial.packed_run) + 1))
    return and_(_M.c.trial_id == trial.trial_id, runs, _M.c.id > after)


async def series_of(
    session: ReadSession, trial_ids: Collection[int], names: Collection[tuple[str, str]]
) -> list[StoredSeries]:
    wanted = set(names)
    groups = {group for group, _ in wanted}
    rows = []
    for ids in batched(sorted(trial_ids), BATCH_ROWS):
        for some in batched(sorted({name for _, name in wanted}), BATCH_ROWS):
            query = select(_S.c.id, _S.c.trial_id, _S.c.group, _S.c.name, _S.c.points, _S.c.packed_id).where(
                _S.c.trial_id.in_(ids), _S.c.group.in_(groups), _S.c.name.in_(some)
            )
            rows += [StoredSeries(*row) for row in (await session.execute(query)).all()]
    return [row for row in rows if (row.group, row.name) in wanted]


_RANGES = {
    "batches": (_K.c.least_batches, _K.c.most_batches),
    "time": (_K.c.least_time, _K.c.most_time),
    "epochs": (_K.c.least_epoch, _K.c.most_epoch),
}


async def extents(
    session: ReadSession, series_ids: Sequence[int], axis: Axis, start: float | None, end: float | None
) -> list[Extent]:
    """Returns the chunks that overlap ``start`` to ``end``, in order."""
    least, most = (type_coerce(column, Float) for column in _RANGES[axis])
    query = select(_K.c.series_id, _K.c.place, _K.c.points, least, most, _K.c.epochs)
    query = query.where(_K.c.series_id.in_(series_ids), _K.c.factor == 1, least.is_not(None))
    if start is not None:
        query = query.where(most >= start)
    if end is not None:
        query = query.where(least <= end)
    return [Extent(*row) for row in (await session.execute(query.order_by(_K.c.series_id, _K.c.place))).all()]


async def open_chunks(session: ReadSession, rows: Sequence[StoredSeries], size: int) -> dict[int, tuple[int, bytes]]:
    """Returns, by series whose last chunk is not full, the report of its first point, and its bytes."""
    places = {row.id: (row.points // size,) for row in rows if row.points % size}
    if not places:
        return {}
    query = select(_K.c.series_id, _K.c.first_id, _K.c.data).where(_K.c.factor == 1, _at(places))
    return {row[0]: (row[1], row[2]) for row in (await session.execute(query)).all()}


async def chunks(
    session: ReadSession, factor: int, places: Mapping[int, Collection[int]]
) -> dict[tuple[int, int], bytes]:
    """Returns the bytes by series and place. Consecutive places are read as one range."""
    places = {series_id: some for series_id, some in places.items() if some}
    if not places:
        return {}
    query = select(_K.c.series_id, _K.c.place, _K.c.data).where(_K.c.factor == factor, _at(places))
    return {(row[0], row[1]): row[2] for row in (await session.execute(query)).all()}


def _at(places: Mapping[int, Collection[int]]) -> ColumnElement[bool]:
    """Selects series from their first to their last place. Series with the same places share a condition, because a
    condition for each takes longer to compile than to run."""
    ids: dict[tuple[int, int], list[int]] = {}
    for series_id, some in places.items():
        ids.setdefault((min(some), max(some)), []).append(series_id)
    return or_(*(and_(_K.c.series_id.in_(own), _K.c.place.between(*ends)) for ends, own in ids.items()))


async def reach(session: WriteSession, trial_id: int, until: int) -> int:
    """Announces that reports up to ``until`` will be packed; returns the version for writing."""
    further = case((_C.c.reached_id > until, _C.c.reached_id), else_=until)
    known = update(_C).where(_C.c.trial_id == trial_id).values(reached_id=further)
    version: int | None = (await session.execute(known.returning(_C.c.version))).scalar_one_or_none()
    if version is not None:
        return version
    await session.execute(
        insert(_C).values(trial_id=trial_id, packed_id=0, packed_run=0, reached_id=until, version=0, done_run=-1)
    )
    return 0


async def claim(session: WriteSession, trial_id: int, version: int, **values: object) -> bool:
    """Updates a cursor and locks its row. Returns False if a report up to it was changed since."""
    result = await session.execute(
        update(_C)
        .where(_C.c.trial_id == trial_id, _C.c.version == version)
        .values(version=version, **values)
        .returning(_C.c.trial_id)
    )
    return result.scalar_one_or_none() is not None


async def finish(session: WriteSession, trials: Sequence[Cursor]) -> None:
    """Records that ended trials are not packed further, in a constant number of statements."""
    ids = [trial.trial_id for trial in trials]
    known = set((await session.scalars(select(_C.c.trial_id).where(_C.c.trial_id.in_(ids)))).all())
    done = [{"of_trial": trial.trial_id, "run": trial.run_id} for trial in trials if trial.trial_id in known]
    await _FINISH.execute(session, done)
    fresh = [
        {"trial_id": trial.trial_id, "packed_id": 0, "packed_run": 0, "reached_id": 0, "version": 0}
        | {"done_run": trial.run_id}
        for trial in trials
        if trial.trial_id not in known
    ]
    if fresh:
        await session.execute(insert(_C), fresh)


_FINISH: Prepared[()] = Prepared(
    update(_C).where(_C.c.trial_id == bindparam("of_trial")).values(done_run=bindparam("run"))
)


async def save_series(session: WriteSession, row: StoredSeries) -> int:
    """Stores a series and returns its id."""
    if row.id:
        values = {"points": row.points, "packed_id": row.packed_id}
        await session.execute(update(_S).where(_S.c.id == row.id).values(values))
        return row.id
    values = {name: value for name, value in row._asdict().items() if name != "id"}
    found: int = (await session.execute(insert(_S).values(values).returning(_S.c.id))).scalar_one()
    return found


async def save_chunks(session: WriteSession, series_id: int, rows: Sequence[dict[str, Any]]) -> None:
    """Replaces the chunks from the first of these on."""
    first = min(row["place"] for row in rows)
    await session.execute(delete(_K).where(_K.c.series_id == series_id, _K.c.place >= first))
    await session.execute(insert(_K), [{"series_id": series_id, **row} for row in rows])


async def drop_some_chunks(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` chunks of an experiment and returns their number."""
    series = select(_S.c.id).where(_S.c.trial_id.in_(_trials_of(experiment_id)))
    return await delete_rows(session, ChunkRow, select(_K.c.id).where(_K.c.series_id.in_(series)).limit(most))


async def drop_some_series(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` series of an experiment without chunks and returns their number."""
    some = select(_S.c.id).where(_S.c.trial_id.in_(_trials_of(experiment_id))).limit(most)
    return await delete_rows(session, SeriesRow, some)


async def drop_some_cursors(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` cursors of an experiment's trials and returns their number."""
    some = select(_C.c.trial_id).where(_C.c.trial_id.in_(_trials_of(experiment_id))).limit(most)
    dropped = await session.execute(delete(_C).where(_C.c.trial_id.in_(some)).returning(_C.c.trial_id))
    return len(dropped.all())


def _trials_of(experiment_id: int) -> Select[Any]:
    return select(_T.c.id).where(_T.c.experiment_id == experiment_id)
