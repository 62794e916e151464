"""SQL for experiments."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, bindparam, case, delete, func, insert, literal, select, update

from determined.errors import NotFound, PreconditionFailed
from determined.metric_directions import smaller_is_better
from determined.states import ExperimentState
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.models import ExperimentLabelRow, ExperimentRow, ProjectRow, SearchEventRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.batches import batched
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import change_row
from determined_master.db.statements.text_search import contains_lowered
from determined_master.events import repository as events
from determined_master.events.state_machine import Event, StateMachine
from determined_master.experiments.order_queries import Order, order_by
from determined_master.experiments.states import ALLOWED
from determined_master.jobs import repository as jobs

MAX_LABELS_A_STATEMENT = 1000
MAX_IDS_A_STATEMENT = 10_000
FIGURES = frozenset({"progress", "searcher_cursor", "searcher_snapshot", "best_trial_id", "best_metric"})
"""Columns that every metric report updates. Changes to them publish ``metrics:<id>`` instead of ``experiment:<id>``, so
views of the state are not refetched."""


@dataclass(frozen=True)
class Selection:
    """Filter of experiments that are not deleted. Empty fields do not restrict."""

    archived: bool | None = None
    name: str = ""
    description: str = ""
    states: Collection[ExperimentState] = ()
    project_id: int = 0
    owners: Collection[int] | None = None
    """None: of any user. Empty: of no user."""
    labels: Collection[str] = ()
    """Labels that an experiment must all have."""
    ids: Collection[int] | None = None
    excluded: Collection[int] = ()
    above: int | None = None
    below: int | None = None
    """Exclusive bounds of the id."""

    def where(self) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = [ExperimentRow.state != ExperimentState.DELETED]
        if self.archived is not None:
            conditions.append(ExperimentRow.archived == self.archived)
        if self.name:
            conditions.append(contains_lowered(ExperimentRow.name, self.name.lower()))
        if self.description:
            conditions.append(contains_lowered(ExperimentRow.description, self.description.lower()))
        if self.states:
            conditions.append(ExperimentRow.state.in_(self.states))
        if self.project_id:
            conditions.append(ExperimentRow.project_id == self.project_id)
        if self.owners is not None:
            conditions.append(ExperimentRow.user_id.in_(self.owners))
        for label in self.labels:
            cut = label[: ExperimentLabelRow.MAX_CHARACTERS]
            with_it = select(ExperimentLabelRow.experiment_id).where(ExperimentLabelRow.label == cut)
            conditions.append(ExperimentRow.id.in_(with_it))
        return conditions + self._ids_where()

    def _ids_where(self) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if self.ids is not None:
            conditions.append(ExperimentRow.id.in_(self.ids))
        if self.excluded:
            conditions.append(ExperimentRow.id.not_in(self.excluded))
        if self.above is not None:
            conditions.append(ExperimentRow.id > self.above)
        if self.below is not None:
            conditions.append(ExperimentRow.id < self.below)
        return conditions


@dataclass(frozen=True)
class NameAndSearcher:
    name: str
    searcher_metric: str
    smaller_is_better: bool
    metric_goals: dict[str, str]

    def is_smaller_better(self, metric: str) -> bool | None:
        """Returns None if the configuration does not give the direction of the metric."""
        searcher = {"metric": self.searcher_metric, "smaller_is_better": self.smaller_is_better}
        return smaller_is_better({"searcher": searcher, "metric_goals": self.metric_goals}, metric)


class SearchPosition(NamedTuple):
    """What tells whether a search goes on where it was."""

    state: ExperimentState
    searcher_type: str
    cursor: int
    """The last event that the search has processed."""
    live_progress: float
    """Of the trials that have not ended, added up."""


MACHINE = StateMachine("experiment", ExperimentRow, ExperimentRow.id, ALLOWED, refusal=PreconditionFailed)


async def find(session: ReadSession, experiment_id: int) -> ExperimentRow | None:
    """Returns None for a deleted experiment."""
    row = await session.get(ExperimentRow, experiment_id)
    return None if row is None or row.state is ExperimentState.DELETED else row


async def get(session: ReadSession, experiment_id: int) -> ExperimentRow:
    row = await find(session, experiment_id)
    if row is None:
        raise NotFound(f"experiment '{experiment_id}' not found")
    return row


async def find_by_job(session: ReadSession, job_id: str) -> ExperimentRow | None:
    return (await find_by_jobs(session, [job_id])).get(job_id)


async def find_by_jobs(session: ReadSession, job_ids: Collection[str]) -> dict[str, ExperimentRow]:
    """Returns experiments by job; jobs of other work are absent."""
    rows = await session.scalars(select(ExperimentRow).where(ExperimentRow.job_id.in_(job_ids)))
    return {row.job_id: row for row in rows}


async def get_many(session: ReadSession, experiment_ids: Sequence[int]) -> Sequence[ExperimentRow]:
    return (await session.scalars(select(ExperimentRow).where(ExperimentRow.id.in_(experiment_ids)))).all()


async def names_and_searchers(session: ReadSession, experiment_ids: Collection[int]) -> dict[int, NameAndSearcher]:
    """Returns them by experiment, without reading the rows, which are long."""
    searcher = (ExperimentRow.searcher_metric, ExperimentRow.smaller_is_better)
    columns = (ExperimentRow.id, ExperimentRow.name, *searcher, ExperimentRow.config["metric_goals"])
    by_id: dict[int, NameAndSearcher] = {}
    for batch in batched(list(experiment_ids), MAX_IDS_A_STATEMENT):
        rows = await session.execute(select(*columns).where(ExperimentRow.id.in_(batch)))
        by_id.update(
            (id_, NameAndSearcher(name, metric, smaller, goals or {})) for id_, name, metric, smaller, goals in rows
        )
    return by_id


async def add(
    session: WriteSession, row: ExperimentRow, *, priority: int, weight: float = 1.0, max_slots: int | None = None
) -> None:
    """Adds an experiment and its job."""
    await jobs.add(
        session,
        row.job_id,
        pool=row.pool,
        priority=priority,
        weight=weight,
        max_slots=max_slots,
        position=row.start_time,
    )
    session.add(row)
    await session.flush()
    await _keep_labels(session, row.id, row.labels)
    notify(session, notifications.experiment(row.id))


async def change(session: WriteSession, row: ExperimentRow, **values: object) -> None:
    """Updates columns of an experiment other than its state."""
    await change_row(session, row, values)
    if "labels" in values:
        await _keep_labels(session, row.id, row.labels)
    notify(session, notifications.metrics(row.id) if values.keys() <= FIGURES else notifications.experiment(row.id))


async def _keep_labels(session: WriteSession, experiment_id: int, labels: Collection[str]) -> None:
    """Stores the labels in the table that lists read, in the transaction that changes the row."""
    await session.execute(delete(ExperimentLabelRow).where(ExperimentLabelRow.experiment_id == experiment_id))
    cut = sorted({label[: ExperimentLabelRow.MAX_CHARACTERS] for label in labels})
    # In batches: a configuration may have 100,000 labels, and preparing a statement blocks the event loop.
    for batch in batched(cut, MAX_LABELS_A_STATEMENT):
        rows = [{"label": label, "experiment_id": experiment_id} for label in batch]
        await session.execute(insert(ExperimentLabelRow), rows)


async def move(
    session: WriteSession,
    clock: Clock,
    row: ExperimentRow,
    to: ExperimentState,
    *,
    actor: str = events.SYSTEM,
    message: str = "",
    event: Event | None = None,
    **values: object,
) -> bool:
    """Changes the state of an experiment, see ``StateMachine.move``. ``message`` gives the reason in the event;
    ``event`` replaces it."""
    event = event or Event(actor, payload={"message": message} if message else {})
    if to.is_ended:
        values = {"retention_due": True, **values}
        notify(session, notifications.RETENTION)
    if not await MACHINE.move(session, clock, row, to, event, **values):
        return False
    own = notifications.deleted(row.id) if to is ExperimentState.DELETED else notifications.experiment(row.id)
    notify(session, own, notifications.SEARCH_TASKS)
    return True


async def ids(session: ReadSession, wanted: Selection) -> Sequence[int]:
    return (await session.scalars(select(ExperimentRow.id).where(*wanted.where()).order_by(ExperimentRow.id))).all()


async def page(
    session: ReadSession, wanted: Selection, *, by: Order, descending: bool, offset: int, limit: int | None
) -> tuple[Sequence[ExperimentRow], int]:
    """Returns one page in the order ``by``, and the total number."""
    where = wanted.where()
    total = (await session.execute(select(func.count()).select_from(ExperimentRow).where(*where))).scalar_one()
    query = select(ExperimentRow).where(*where).order_by(*order_by(by, descending=descending))
    query = query.offset(offset)
    if limit is not None:
        query = query.limit(limit)
    return (await session.scalars(query)).all(), total


async def count_in_projects(session: ReadSession, project_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Returns by project the number of all experiments, and of the ACTIVE ones; empty projects are absent."""
    active = func.count().filter(ExperimentRow.state == ExperimentState.ACTIVE)
    counts: dict[int, tuple[int, int]] = {}
    for batch in batched(list(project_ids), MAX_IDS_A_STATEMENT):
        query = select(ExperimentRow.project_id, func.count(), active).where(
            ExperimentRow.project_id.in_(batch), ExperimentRow.state != ExperimentState.DELETED
        )
        for project_id, total, of_them in await session.execute(query.group_by(ExperimentRow.project_id)):
            counts[project_id] = (total, of_them)
    return counts


async def count_in_workspaces(session: ReadSession, workspace_ids: Collection[int]) -> dict[int, int]:
    """Returns the number of experiments by workspace; empty workspaces are absent."""
    counts: dict[int, int] = {}
    for batch in batched(list(workspace_ids), MAX_IDS_A_STATEMENT):
        query = (
            select(ProjectRow.workspace_id, func.count())
            .join(ExperimentRow, ExperimentRow.project_id == ProjectRow.id)
            .where(ProjectRow.workspace_id.in_(batch), ExperimentRow.state != ExperimentState.DELETED)
            .group_by(ProjectRow.workspace_id)
        )
        counts.update((workspace_id, number) for workspace_id, number in await session.execute(query))
    return counts


_STOPPING = [state for state in ExperimentState if state.is_stopping]
_WITH_EVENTS = (
    select(
        SearchEventRow.experiment_id,
        func.max(case((SearchEventRow.kind == "validated", 0), else_=1)).label("has_others"),
    )
    .where(SearchEventRow.processed.is_(False))
    .group_by(SearchEventRow.experiment_id)
    .union_all(select(ExperimentRow.id, literal(1)).where(ExperimentRow.state.in_(_STOPPING)))
    .subquery()
)
_SEARCHES_DUE = Prepared(select(_WITH_EVENTS.c.experiment_id, _WITH_EVENTS.c.has_others))


async def searches_due(session: ReadSession) -> dict[int, bool]:
    """Returns the experiments with events that their search has not processed, and those that stop, in their order;
    False for one that has only validations to process."""
    found: dict[int, bool] = {}
    for experiment_id, has_others in sorted(await _SEARCHES_DUE.rows(session)):
        found[experiment_id] = bool(has_others)
    return found


async def search_position(session: ReadSession, experiment_id: int) -> SearchPosition | None:
    """Returns None for a deleted experiment."""
    found = [SearchPosition(*row) for row in await _POSITION.rows(session, experiment_id=experiment_id)]
    return found[0] if found and found[0].state is not ExperimentState.DELETED else None


_POSITION = Prepared(
    select(ExperimentRow.state, ExperimentRow.searcher_type, ExperimentRow.searcher_cursor)
    .add_columns(
        select(func.coalesce(func.sum(TrialRow.progress), 0.0))
        .where(TrialRow.experiment_id == ExperimentRow.id, TrialRow.is_live())
        .scalar_subquery()
    )
    .where(ExperimentRow.id == bindparam("experiment_id"))
)
_ROWS = table_of(ExperimentRow)
_PASS_EVENTS: Prepared[int] = Prepared(
    update(_ROWS)
    .where(
        _ROWS.c.id == bindparam("experiment"),
        _ROWS.c.searcher_cursor == bindparam("from_cursor"),
        _ROWS.c.state == bindparam("in_state"),
    )
    .values(searcher_cursor=bindparam("to_cursor"), progress=bindparam("to_progress"))
    .returning(_ROWS.c.id)
)


async def pass_events(
    session: WriteSession, experiment_id: int, at: SearchPosition, *, searcher_cursor: int, progress: float
) -> bool:
    """Stores that a search has processed events and wants nothing. Returns False if it is no longer ``at``."""
    values = {"experiment": experiment_id, "from_cursor": at.cursor, "in_state": at.state}
    values |= {"to_cursor": searcher_cursor, "to_progress": progress}
    if not await _PASS_EVENTS.rows(session, **values):
        return False
    notify(session, notifications.metrics(experiment_id))
    return True


async def deleting(session: ReadSession) -> Sequence[int]:
    query = select(ExperimentRow.id).where(ExperimentRow.state == ExperimentState.DELETING)
    return (await session.scalars(query.order_by(ExperimentRow.id))).all()


async def referenced_contexts(session: ReadSession) -> set[str]:
    query = select(ExperimentRow.context_hash).where(
        ExperimentRow.context_hash.is_not(None), ExperimentRow.state != ExperimentState.DELETED
    )
    return {value for value in (await session.scalars(query)).all() if value}


async def remove(session: WriteSession, experiment_id: int) -> None:
    await session.execute(delete(ExperimentRow).where(ExperimentRow.id == experiment_id))
    notify(session, notifications.deleted(experiment_id))
