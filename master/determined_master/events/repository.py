"""SQL for events."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select

from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.models import EventRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.row_changes import insert_rows

SYSTEM = "system"
_INSERT = insert(table_of(EventRow)).inline()
"""Of the table instead of the objects, which takes less time, and without a look for the new id."""


@dataclass(frozen=True)
class Selection:
    """Filter of events. Empty fields do not restrict."""

    kind: str = ""
    actor: str = ""
    target_type: str = ""
    target_id: str = ""


async def record(
    session: WriteSession,
    clock: Clock,
    *,
    actor: str,
    kind: str,
    target_type: str,
    target_id: object,
    payload: dict[str, Any] | None = None,
) -> None:
    """Records an event in the transaction of the change."""
    values = {
        "time": clock.now(),
        "actor": actor,
        "kind": kind,
        "target_type": target_type,
        "target_id": str(target_id),
        "payload": payload or {},
    }
    await insert_rows(session, table_of(EventRow), [values])
    notify(session, notifications.EVENTS)


async def record_many(
    session: WriteSession,
    clock: Clock,
    *,
    actor: str,
    kind: str,
    target_type: str,
    payloads: Mapping[Any, Mapping[str, Any]],
) -> None:
    """Like :func:`record`, one event for each target id in ``payloads``, in one statement."""
    rows = [(kind, key, payload) for key, payload in payloads.items()]
    await record_all(session, clock, actor=actor, target_type=target_type, rows=rows)


async def record_all(
    session: WriteSession, clock: Clock, *, actor: str, target_type: str, rows: Sequence[tuple[str, object, Any]]
) -> None:
    """Records several events in their order, in one statement; ``rows`` holds kind, target id and payload of each."""
    if not rows:
        return
    common = {"time": clock.now(), "actor": actor, "target_type": target_type}
    values = [common | {"kind": kind, "target_id": str(key), "payload": dict(payload)} for kind, key, payload in rows]
    await insert_rows(session, table_of(EventRow), values)
    notify(session, notifications.EVENTS)


def insert_events(
    connection: Connection, time: datetime, *, target_type: str, rows: Sequence[tuple[str, object, Any]]
) -> None:
    """Like :func:`record_all`, by the system, in the group-commit writer's thread. The caller publishes."""
    values = [
        {
            "time": time,
            "actor": SYSTEM,
            "target_type": target_type,
            "kind": kind,
            "target_id": str(key),
            "payload": dict(payload),
        }
        for kind, key, payload in rows
    ]
    connection.execute(_INSERT, values)


async def moves_of(session: ReadSession, target_type: str, target_ids: Collection[str]) -> Sequence[EventRow]:
    """Returns changes of state, oldest first."""
    query = select(EventRow).where(EventRow.target_type == target_type, EventRow.target_id.in_(target_ids), _IS_MOVE)
    # Sorted in Python: with ORDER BY the database would scan all events of this type.
    return sorted((await session.scalars(query)).all(), key=lambda row: row.id)


async def last_move(session: ReadSession, target_type: str, target_id: object) -> EventRow | None:
    query = select(EventRow).where(EventRow.target_type == target_type, EventRow.target_id == str(target_id), _IS_MOVE)
    return (await session.scalars(query.order_by(EventRow.id.desc()).limit(1))).first()


_IS_MOVE = func.coalesce(EventRow.kind, "") == "moved"
"""Disables the index of kinds: a target has few events, while moves are a fifth of all."""


async def page(
    session: ReadSession,
    wanted: Selection,
    *,
    before: int | None,
    most: int,
    conditions: Sequence[ColumnElement[bool]] = (),
) -> Sequence[EventRow]:
    """Returns events below the id ``before`` that meet all ``conditions``, newest first."""
    query = select(EventRow).where(*conditions).order_by(EventRow.id.desc()).limit(most)
    for name in ("kind", "actor", "target_type", "target_id"):
        value = getattr(wanted, name)
        if value:
            query = query.where(getattr(EventRow, name) == value)
    if before is not None:
        query = query.where(EventRow.id < before)
    return (await session.scalars(query)).all()
