"""SQL for lists of experiments: filtered, sorted, counted and grouped."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Float,
    Label,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
    type_coerce,
)
from sqlalchemy.orm import InstrumentedAttribute, aliased, load_only

from determined.states import ExperimentState
from determined_master.db.models import (
    ColumnValueRow,
    ExperimentLabelRow,
    ExperimentRow,
    ExperimentSummaryRow,
    UserRow,
)
from determined_master.db.session import ReadSession
from determined_master.db.statements.text_search import contains_lowered
from determined_master.experiment_index.cell_values import Value, cell
from determined_master.experiment_index.filter_sql import (
    Condition,
    Conditions,
    StoredColumn,
    from_,
    listed,
    own,
    shown_state,
)
from determined_master.experiment_index.filters import SortKey

E, S, U, V = ExperimentRow, ExperimentSummaryRow, UserRow, ColumnValueRow
MAX_GROUPS = 500
_SHOWN = (
    *(E.id, E.name, E.description, E.archived, E.labels, E.user_id, E.project_id, E.parent_id, E.progress),
    *(E.start_time, E.end_time, E.pool, E.searcher_type, E.searcher_metric, E.smaller_is_better),
)
"""Columns of a list: without the configuration, which is most of a row."""


class ListedExperiment(NamedTuple):
    """One experiment of a list, from one row of a query. ``experiment`` is loaded without its configuration."""

    experiment: ExperimentRow
    username: str
    summary: ExperimentSummaryRow | None
    state: str
    """The displayed state."""


async def count(session: ReadSession, where: Sequence[Condition], columns: Collection[str]) -> int:
    query = select(func.count()).select_from(from_(columns)).where(*where)
    return (await session.execute(query)).scalar_one()


async def ids(
    session: ReadSession,
    conditions: Conditions,
    where: Sequence[Condition],
    columns: Collection[str],
    order: Sequence[SortKey],
    *,
    offset: int = 0,
    limit: int | None = None,
) -> list[int]:
    """Returns ids in order; other columns are read for the shown page only."""
    query = conditions.ordered(select(E.id).select_from(from_(columns)).where(*where), order)
    return list((await session.scalars(query.offset(offset).limit(limit))).all())


async def shown(session: ReadSession, experiment_ids: Sequence[int]) -> list[ListedExperiment]:
    """Returns the experiments in the order of the ids."""
    query = (
        select(E, U.username, S, shown_state())
        .options(load_only(*_SHOWN))
        .join(U, U.id == E.user_id)
        .outerjoin(S, S.experiment_id == E.id)
        .where(E.id.in_(experiment_ids))
    )
    found = {row[0].id: ListedExperiment(*row) for row in (await session.execute(query)).all()}
    return [found[i] for i in experiment_ids if i in found]


async def cells(
    session: ReadSession, columns: dict[str, StoredColumn], experiment_ids: Sequence[int]
) -> dict[int, dict[str, float | str | bool | None]]:
    """Returns each experiment's value of each column; null if it has none."""
    name_ids = {stored.name_id for stored in columns.values()}
    query: Any = select(V.experiment_id, V.name_id, *(getattr(V, name) for name in Value.__slots__)).where(
        V.name_id.in_(name_ids), V.experiment_id.in_(experiment_ids)
    )
    rows = (await session.execute(query)).all() if columns else []
    values = {(row.experiment_id, row.name_id): Value(*row[2:]) for row in rows}
    return {
        i: {column: _of(stored, values.get((i, stored.name_id))) for column, stored in columns.items()}
        for i in experiment_ids
    }


def _of(stored: StoredColumn, value: Value | None) -> float | str | bool | None:
    if value is None:
        return None
    return cell(value) if stored.statistic == "last" else stored.figure_of(value)


async def groups(
    session: ReadSession, where: Sequence[Condition], columns: Collection[str], by: StoredColumn | str, now: datetime
) -> Sequence[tuple[float | None, str | None, int]]:
    """Returns number, word and count of each group, largest first; missing values form a group too."""
    source: Any = from_(columns)
    number: Any = None
    word: Any = None
    if isinstance(by, StoredColumn):
        value = aliased(V)
        source = source.outerjoin(value, and_(value.name_id == by.name_id, value.experiment_id == E.id))
        number, word = by.figure(value), value.text if by.statistic == "last" else None
    elif by == "tags":
        source = source.outerjoin(ExperimentLabelRow, ExperimentLabelRow.experiment_id == E.id)
        word = ExperimentLabelRow.label
    elif by in ("state", "archived"):
        word = literal("STATE_") + own(by, now) if by == "state" else case((E.archived, "true"), else_="false")
    elif own(by, now).type.python_type is str:
        word = func.nullif(own(by, now), "")
    else:
        number = own(by, now)
    counted = func.count(E.id)
    # By labels of selected columns: PostgreSQL takes a repeated expression with parameters for another one.
    parts = [name for name, part in (("group_number", number), ("group_word", word)) if part is not None]
    query = select(_as(number, Float, "group_number"), _as(word, String, "group_word"), counted).select_from(source)
    order = [literal_column(part, String).nulls_first() for part in parts]
    query = query.where(*where).group_by(*parts).order_by(counted.desc(), *order).limit(MAX_GROUPS)
    return [(row[0], row[1], row[2]) for row in (await session.execute(query)).all()]


def _as(
    part: ColumnElement[Any] | InstrumentedAttribute[Any] | None, kind: type[Float[Any] | String], name: str
) -> Label[Any]:
    return (null() if part is None else type_coerce(part, kind)).label(name)


async def words(
    session: ReadSession, by: StoredColumn | str, where: Sequence[Condition], query: str, limit: int, now: datetime
) -> Sequence[str]:
    """Returns distinct words of a column in order."""
    word: Any
    if isinstance(by, StoredColumn):
        word = V.text
        query_of_words = select(word.label("word")).where(V.name_id == by.name_id, word.is_not(None))
    elif by == "tags":
        word = ExperimentLabelRow.label
        query_of_words = select(word.label("word"))
    else:
        word = shown_state() if by == "state" else cast(own(by, now), String)
        word = literal("STATE_") + word if by == "state" else word
        query_of_words = select(word.label("word")).select_from(from_([by])).where(*where, word != "")
    if query:
        query_of_words = query_of_words.where(contains_lowered(word, query.lower()))
    return (await session.scalars(query_of_words.distinct().order_by("word").limit(limit))).all()


async def labels(session: ReadSession, project_id: int) -> Sequence[str]:
    """Returns the labels of existing experiments, most used first."""
    label = ExperimentLabelRow.label
    query = select(label).group_by(label).order_by(func.count().desc(), label)
    if project_id:
        query = query.join(E, E.id == ExperimentLabelRow.experiment_id).where(E.project_id == project_id)
    return (await session.scalars(query)).all()


async def existing(session: ReadSession, experiment_ids: Sequence[int], project_id: int) -> Sequence[int]:
    """Returns the ids that exist in a project, or with 0 in any."""
    query = select(E.id).where(E.id.in_(experiment_ids), *listed(project_id, archived=True))
    return (await session.scalars(query)).all()


class ActionFacts(NamedTuple):
    """What decides on the actions that a user can do to an experiment."""

    id: int
    state: ExperimentState
    archived: bool
    owner_id: int


async def action_facts(session: ReadSession, experiment_ids: Sequence[int]) -> list[ActionFacts]:
    """Returns the experiments that exist, by id."""
    query = select(E.id, E.state, E.archived, E.user_id).where(E.id.in_(experiment_ids), *listed(0, archived=True))
    return [ActionFacts(*row) for row in (await session.execute(query.order_by(E.id))).all()]
