"""SQL for search events: committed changes of trials that their experiment's search has to process."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from determined_master.db.base import table_of
from determined_master.db.models import SearchEventRow
from determined_master.db.session import ReadSession, WriteSession


async def add_event(
    session: WriteSession, experiment_id: int, trial_id: int, kind: str, payload: dict[str, Any]
) -> None:
    """Records a search event in the transaction of the change itself."""
    values = {"experiment_id": experiment_id, "trial_id": trial_id, "kind": kind, "payload": payload}
    await session.execute(insert(table_of(SearchEventRow)).inline(), values)


async def add_closed(session: WriteSession, trials: Sequence[tuple[int, int]], reason: str) -> None:
    """Records in one statement that trials have ended; ``trials`` holds experiment id and trial id of each."""
    rows = [
        {"experiment_id": experiment_id, "trial_id": trial_id, "kind": "closed", "payload": {"reason": reason}}
        for experiment_id, trial_id in trials
    ]
    if rows:
        await session.execute(insert(SearchEventRow), rows)


async def events_after(
    session: ReadSession, experiment_id: int, cursor: int, *, to: int | None = None, limit: int | None = None
) -> Sequence[SearchEventRow]:
    """Returns the events after ``cursor``, up to the event ``to``, or the first ``limit`` ones, if that is given."""
    query = (
        select(SearchEventRow)
        .where(SearchEventRow.experiment_id == experiment_id, SearchEventRow.id > cursor)
        .order_by(SearchEventRow.id)
    )
    if to is not None:
        query = query.where(SearchEventRow.id <= to)
    return (await session.scalars(query if limit is None else query.limit(limit))).all()


async def mark_processed(session: WriteSession, experiment_id: int, cursor: int) -> None:
    await session.execute(_MARK, {"of_experiment": experiment_id, "cursor": cursor})


_EVENTS = table_of(SearchEventRow)
_MARK = (
    update(_EVENTS)
    .where(
        _EVENTS.c.experiment_id == bindparam("of_experiment"),
        _EVENTS.c.id <= bindparam("cursor"),
        _EVENTS.c.heard.is_(False),
    )
    .values(heard=True)
)


async def drop(session: WriteSession, experiment_id: int) -> None:
    """Removes the events of a deleted experiment."""
    await session.execute(delete(SearchEventRow).where(SearchEventRow.experiment_id == experiment_id))
