"""A checked filter and an order as SQL. Each condition is true or false, never unknown: what has no value is not less,
not equal and does not contain, so ``!=`` and ``notContains`` hold for it.

The rows of experiments are long (their configuration is in them), so values are looked up by id in tables of their own,
and the first pass over a list reads an index alone where it can.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    String,
    and_,
    case,
    false,
    func,
    not_,
    or_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.orm import aliased

from determined.errors import BadRequest
from determined.states import AllocationState, ExperimentState, TrialState
from determined_master.db.models import (
    AllocationRow,
    ColumnValueRow,
    EnvironmentWaitRow,
    ExperimentLabelRow,
    ExperimentRow,
    ExperimentSummaryRow,
    TrialRow,
    UserRow,
)
from determined_master.db.models.base import to_micros
from determined_master.db.statements.text_search import contains_lowered
from determined_master.experiment_index.cell_values import Value
from determined_master.experiment_index.column_names import Statistic
from determined_master.experiment_index.filter_values import Dates, figure_of, truth_of, word_of
from determined_master.experiment_index.filters import Field, Group, SortKey
from determined_master.experiment_index.state_words import states_of
from determined_master.states.display_state import BUILDING_ENVIRONMENT, BY_ALLOCATION, PAUSING, PROGRESS, QUEUED

E, S, U = ExperimentRow, ExperimentSummaryRow, UserRow
Condition = ColumnElement[bool]
_OF_SUMMARY = frozenset({"numTrials", "searcherMetricsVal", "checkpointCount", "checkpointSize", "failure"})
_OF_USER = frozenset({"user"})
_MAY_BE_MISSING = frozenset({"endTime", "searcherMetricsVal", "forkedFrom", "tags"})
_MAY_BE_EMPTY = frozenset({"description", "resourcePool", "searcherMetric", "failure"})


@dataclass(frozen=True)
class StoredColumn:
    """A column that is stored in ``column_values``."""

    name_id: int
    statistic: Statistic
    metric: str = ""
    """The bare name of a metric: a condition means the best value where it is the searcher's, which lists show."""

    def figure(self, of: type[ColumnValueRow]) -> ColumnElement[float | None]:
        columns = {"last": of.number, "min": of.minimum, "max": of.maximum, "mean": of.mean}
        return columns[self.statistic].expression

    def figure_of(self, value: Value) -> float | None:
        return {"last": value.number, "min": value.minimum, "max": value.maximum, "mean": value.mean}[self.statistic]


Known = Mapping[str, StoredColumn | str]
"""Column → where it is stored, or the name again for an experiment's own column."""


def from_(columns: Collection[str]) -> FromClause:
    """Returns experiments, joined with the tables that the columns need."""
    source: FromClause = E.__table__
    if _OF_USER & set(columns):
        source = source.outerjoin(U, U.id == E.user_id)
    if _OF_SUMMARY & set(columns):
        source = source.outerjoin(S, S.experiment_id == E.id)
    return source


def shown_state() -> ColumnElement[str]:
    """Returns the displayed state in SQL: the same as ``display_state``, which a test compares."""
    active, paused = E.state == ExperimentState.ACTIVE, E.state == ExperimentState.PAUSED
    words = [(and_(active, E.id.in_(_showing(word))), word) for word in reversed(PROGRESS)]
    return case(
        *words,
        (active, QUEUED),
        (and_(paused, E.id.in_(_with(BY_ALLOCATION))), PAUSING),
        else_=type_coerce(E.state, String),
    )


def own(column: str, now: datetime) -> ColumnElement[Any]:
    """Returns an experiment's own column; null, or an empty text, if it has no value."""
    end, start = type_coerce(E.end_time, BigInteger), type_coerce(E.start_time, BigInteger)
    first_label = select(func.min(ExperimentLabelRow.label)).where(ExperimentLabelRow.experiment_id == E.id)
    columns: dict[str, Any] = {
        "id": E.id,
        "name": E.name,
        "description": E.description,
        "tags": first_label.correlate(E).scalar_subquery(),
        "user": U.username,
        "startTime": E.start_time,
        "endTime": E.end_time,
        "duration": (func.coalesce(end, to_micros(now)) - start) / 1e6,
        "numTrials": func.coalesce(S.num_trials, 0),
        "searcherType": E.searcher_type,
        "searcherMetric": E.searcher_metric,
        "searcherMetricsVal": S.searcher_metric_value,
        "progress": E.progress,
        "forkedFrom": E.parent_id,
        "resourcePool": E.pool,
        "checkpointCount": func.coalesce(S.checkpoint_count, 0),
        "checkpointSize": func.coalesce(S.checkpoint_size, 0),
        "archived": E.archived,
        "failure": func.coalesce(S.failure, ""),
    }
    expression: ColumnElement[Any] = shown_state() if column == "state" else columns[column]
    return expression


def listed(project_id: int, *, archived: bool) -> list[Condition]:
    conditions: list[Condition] = [E.state != ExperimentState.DELETED]
    if not archived:
        conditions.append(E.archived.is_(False))
    if project_id:
        conditions.append(E.project_id == project_id)
    return conditions


class Conditions:
    """SQL of one filter and one order."""

    def __init__(self, known: Known, now: datetime) -> None:
        self._known = known
        self._now = now

    def where(self, group: Group) -> Condition:
        found = [self._field(c) if isinstance(c, Field) else self.where(c) for c in group.children]
        if not found:
            return true()
        return and_(*found) if group.conjunction == "and" else or_(*found)

    def ordered(self, query: Select[Any], order: Collection[SortKey]) -> Select[Any]:
        """Orders the query: numbers, then texts, then missing values in either direction; newer experiments first
        among equals."""
        for by in order:
            stored = self._known[by.column]
            if isinstance(stored, str):
                query = query.order_by(*self._by_own(stored, by.descending))
                continue
            value = aliased(ColumnValueRow)
            query = query.outerjoin(value, and_(value.name_id == stored.name_id, value.experiment_id == E.id))
            figure = stored.figure(value)
            if stored.statistic == "last":
                query = query.order_by(and_(figure.is_(None), value.text.is_(None)))
            query = query.order_by(figure.is_(None), figure.desc() if by.descending else figure)
            if stored.statistic == "last":
                word = case((figure.is_(None), value.text))
                query = query.order_by(word.desc() if by.descending else word)
        return query.order_by(E.id.desc())

    def _by_own(self, column: str, descending: bool) -> list[ColumnElement[Any]]:
        expression = own(column, self._now)
        order = expression.desc() if descending else expression.asc()
        if column in _MAY_BE_EMPTY:
            return [expression == "", order]
        return [expression.is_(None), order] if column in _MAY_BE_MISSING else [order]

    def _field(self, field: Field) -> Condition:
        stored = self._known[field.column]
        positive = {"!=": "=", "notContains": "contains", "isEmpty": "notEmpty"}.get(field.operator)
        operator = positive or field.operator
        if isinstance(stored, str):
            found = self._own(stored, operator, field)
        else:
            # Not a plain ``id IN``: SQLite would read each long row of the list.
            found = (E.id + 0).in_(_having(stored, operator, field))
        return not_(found) if positive else found

    def _own(self, column: str, operator: str, field: Field) -> Condition:
        if column == "tags":
            return (E.id + 0).in_(_tagged(operator, field))
        expression = own(column, self._now)
        present = expression != "" if column in _TEXTS else expression.is_not(None)
        if operator == "notEmpty":
            return present
        if column == "state":
            return _in_state(expression, operator, field)
        if column in _TEXTS:
            return and_(present, _of_text(column, expression, operator, field))
        if column in _TIMES:
            return and_(present, _compared(expression, operator, Dates.of(field)))
        if column == "archived":
            return expression == truth_of(field)
        figure = figure_of(field, needed=True)
        return and_(present, _OPERATIONS[operator](expression, figure))


_TEXTS = frozenset({"name", "description", "user", "searcherType", "searcherMetric", "resourcePool", "failure"})
_TIMES = frozenset({"startTime", "endTime"})
_OPERATIONS: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "contains": lambda a, b: false(),
}


def _showing(word: str) -> Select[Any]:
    """Returns experiments that have a trial which shows the word."""
    if word == BUILDING_ENVIRONMENT:
        return (
            select(TrialRow.experiment_id)
            .join(EnvironmentWaitRow, EnvironmentWaitRow.task_id == TrialRow.task_id)
            .where(EnvironmentWaitRow.is_over.is_(False), TrialRow.state == TrialState.ACTIVE)
            .correlate(None)
        )
    return _with([state for state, shown in BY_ALLOCATION.items() if shown == word])


def _with(states: Collection[AllocationState]) -> Select[Any]:
    """Returns experiments that have an allocation in one of these states."""
    return (
        select(TrialRow.experiment_id)
        .join(AllocationRow, AllocationRow.task_id == TrialRow.task_id)
        .where(AllocationRow.state.in_(states))
        .correlate(None)
    )


def _having(stored: StoredColumn, operator: str, field: Field) -> Select[Any]:
    """Returns experiments whose stored value meets the condition."""
    value = aliased(ColumnValueRow)
    figure = stored.figure(value)
    with_words = stored.statistic == "last"
    condition: Condition
    if operator == "notEmpty":
        condition = or_(figure.is_not(None), value.text.is_not(None)) if with_words else figure.is_not(None)
    elif operator == "contains":
        condition = contains_lowered(value.text, word_of(field).lower()) if with_words else false()
    elif operator == "=":
        number = figure_of(field, needed=False)
        condition = false() if number is None else figure == number
        if with_words and not isinstance(field.value, float):
            condition = or_(condition, value.text == word_of(field))
    else:
        condition = _OPERATIONS[operator](figure, figure_of(field, needed=True))
    query = select(value.experiment_id).where(value.name_id == stored.name_id, condition)
    return _best_or(query, stored.metric, operator, field) if stored.metric else query


def _best_or(others: Select[Any], metric: str, operator: str, field: Field) -> Select[Any]:
    """Returns experiments whose searcher's metric is ``metric`` and whose best value of it meets the condition, and
    those of ``others`` that have another one."""
    experiment, summary = aliased(ExperimentRow), aliased(ExperimentSummaryRow)
    best: ColumnElement[Any] = summary.searcher_metric_value.expression
    number = figure_of(field, needed=operator not in ("notEmpty", "contains", "="))
    condition = (
        best.is_not(None) if operator == "notEmpty" else and_(best.is_not(None), _compare(operator, best, number))
    )
    return (
        select(experiment.id)
        .outerjoin(summary, summary.experiment_id == experiment.id)
        .where(
            or_(
                and_(experiment.searcher_metric == metric, condition),
                and_(experiment.searcher_metric != metric, experiment.id.in_(others)),
            )
        )
        .correlate(None)
    )


def _compare(operator: str, figure: ColumnElement[Any], number: float | None) -> Condition:
    return false() if number is None else _OPERATIONS[operator](figure, number)


def _tagged(operator: str, field: Field) -> Select[Any]:
    label = ExperimentLabelRow
    query = select(label.experiment_id)
    if operator == "notEmpty":
        return query
    return query.where(_of_text("tags", label.label.expression, operator, field))


def _of_text(column: str, expression: ColumnElement[str], operator: str, field: Field) -> Condition:
    word = word_of(field)
    condition: Condition
    if operator == "contains":
        return contains_lowered(expression, word.lower())
    _refuse_order(column, operator)
    condition = expression == word
    number = figure_of(field, needed=False) if column == "user" else None
    return or_(condition, E.user_id == number) if number is not None else condition


def _in_state(expression: ColumnElement[str], operator: str, field: Field) -> Condition:
    states = states_of(field)
    if operator == "contains":
        return expression.in_(states)
    _refuse_order(field.column, operator)
    return or_(expression.in_(states), type_coerce(E.state, String).in_(states))


def _refuse_order(column: str, operator: str) -> None:
    if operator != "=":
        raise BadRequest(f"{column} has text values; {operator} needs numbers or times")


def _compared(expression: ColumnElement[datetime], operator: str, dates: Dates) -> Condition:
    """Compares with a period: a day without a time means the whole day."""
    if operator == "=":
        return and_(expression >= dates.first, expression <= dates.last)
    return {
        "<": expression < dates.first,
        "<=": expression <= dates.last,
        ">": expression > dates.last,
        ">=": expression >= dates.first,
    }[operator]
