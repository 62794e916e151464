"""SQL for search events: committed changes of trials that their experiment's search has to process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, delete, select, update

from determined_master.db.models import SearchEventRow, TrialRow
from determined_master.db.models.base import MAX_INT64, table_of
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import delete_rows, insert_rows

_EVENTS = table_of(SearchEventRow)
LOT = "lot"
"""Kind of the event after which a search creates more trials."""
RESUME = "resume"
"""Kind of the event after which more trials of a continued search train on."""
ACTIONS = "actions"
"""Kind of the events that hold actions of a search in a task, a lot each: see ``next_actions``."""
_LOTS = (LOT, RESUME, ACTIONS)


class SearchEvent(NamedTuple):
    """What a search has to process. ``request_id``: the name by which it knows the trial; None for an event of the
    whole search."""

    id: int
    trial_id: int
    kind: str
    payload: dict[str, Any]
    request_id: str | None


async def add_event(
    session: WriteSession, experiment_id: int, trial_id: int, kind: str, payload: dict[str, Any]
) -> None:
    """Records a search event in the transaction of the change itself."""
    values = {"experiment_id": experiment_id, "trial_id": trial_id, "kind": kind, "payload": payload}
    await insert_rows(session, _EVENTS, [values])


async def add_closed(session: WriteSession, trials: Sequence[tuple[int, int]], reason: str) -> None:
    """Records in one statement that trials have ended; ``trials`` holds experiment id and trial id of each."""
    rows = [
        {"experiment_id": experiment_id, "trial_id": trial_id, "kind": "closed", "payload": {"reason": reason}}
        for experiment_id, trial_id in trials
    ]
    await insert_rows(session, _EVENTS, [row | {"heard": False} for row in rows])


async def add_actions(session: WriteSession, experiment_id: int, lots: Sequence[list[dict[str, Any]]]) -> None:
    """Keeps lots of actions, which are applied one after another."""
    common = {"experiment_id": experiment_id, "trial_id": 0, "kind": ACTIONS}
    await insert_rows(session, _EVENTS, [common | {"payload": {"actions": lot}} for lot in lots])


async def next_actions(session: ReadSession, experiment_id: int) -> SearchEventRow | None:
    """Returns the first lot of actions that is not applied yet."""
    return await _NEXT_ACTIONS.first(session, experiment_id=experiment_id)


_NEXT_ACTIONS = Prepared(
    select(SearchEventRow)
    .where(SearchEventRow.experiment_id == bindparam("experiment_id"), SearchEventRow.processed.is_(False))
    .where(SearchEventRow.kind == ACTIONS)
    .order_by(SearchEventRow.id)
    .limit(1)
)


async def drop_lots(session: WriteSession, experiment_id: int) -> None:
    """Takes back that a search is to go on with a lot of trials, in the transaction that stops it."""
    await session.execute(
        delete(SearchEventRow).where(
            SearchEventRow.experiment_id == experiment_id,
            SearchEventRow.processed.is_(False),
            SearchEventRow.kind.in_(_LOTS),
        )
    )


async def events_after(
    session: ReadSession, experiment_id: int, cursor: int, *, to: int | None = None, limit: int | None = None
) -> Sequence[SearchEvent]:
    """Returns the events that a search processes after ``cursor``: up to the event ``to``, or the first ``limit``, if
    that is given."""
    values = {"experiment_id": experiment_id, "cursor": cursor, "to": MAX_INT64 if to is None else to}
    rows = await _AFTER.rows(session, **values, most=MAX_INT64 if limit is None else limit)
    return [SearchEvent(*row) for row in rows]


_AFTER = Prepared(
    select(SearchEventRow.id, SearchEventRow.trial_id, SearchEventRow.kind, SearchEventRow.payload)
    .add_columns(TrialRow.request_id)
    .outerjoin(TrialRow, TrialRow.id == SearchEventRow.trial_id)
    .where(SearchEventRow.experiment_id == bindparam("experiment_id"))
    .where(SearchEventRow.id > bindparam("cursor"), SearchEventRow.id <= bindparam("to"))
    .where(SearchEventRow.kind != ACTIONS)
    .order_by(SearchEventRow.id)
    .limit(bindparam("most", type_=BigInteger))
)


async def is_continued_after(session: ReadSession, experiment_id: int, cursor: int) -> bool:
    """Returns True if the search was continued after the event ``cursor``."""
    query = select(SearchEventRow.id).where(
        SearchEventRow.experiment_id == experiment_id, SearchEventRow.id > cursor, SearchEventRow.kind == "continued"
    )
    return (await session.scalars(query.limit(1))).first() is not None


async def mark_processed(session: WriteSession, experiment_id: int, cursor: int) -> None:
    await _MARK.execute(session, [{"of_experiment": experiment_id, "cursor": cursor}])


_MARK: Prepared[()] = Prepared(
    update(_EVENTS)
    .where(
        _EVENTS.c.experiment_id == bindparam("of_experiment"),
        _EVENTS.c.id <= bindparam("cursor"),
        _EVENTS.c.heard.is_(False),
    )
    .values(heard=True)
)


async def mark_one(session: WriteSession, event_id: int) -> None:
    """Marks one event as processed, whose place is not that of the search."""
    await session.execute(update(SearchEventRow).where(SearchEventRow.id == event_id).values(processed=True))


async def drop_some(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` events of an experiment and returns their number."""
    some = select(SearchEventRow.id).where(SearchEventRow.experiment_id == experiment_id).limit(most)
    return await delete_rows(session, SearchEventRow, some)
