"""SQL for log lines. Functions that take a Connection run in the group-commit writer's thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, or_, select, true, update

from determined_master import notifications
from determined_master.db.models import ContainerRow, LogRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.bulk_insert import copy_rows
from determined_master.db.statements.row_changes import delete_rows, insert_rows
from determined_master.db.statements.text_search import contains_lowered
from determined_master.logs.error_lines import is_error
from determined_master.logs.line import LogLine

_L = table_of(LogRow)
MAX_PAGE_CHARACTERS = 256 * 1024
"""A page ends with the line that reaches it."""


@dataclass(frozen=True)
class Selection:
    """Filter of log lines. Empty fields do not restrict."""

    allocation_ids: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()
    container_ids: tuple[str, ...] = ()
    rank_ids: tuple[int, ...] = ()
    """-1: lines without a rank."""
    levels: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    stdtypes: tuple[str, ...] = ()
    before: datetime | None = None
    after: datetime | None = None
    text: str = ""
    words: str = ""
    """As ``text``, case-insensitive."""

    def where(self) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if self.allocation_ids:
            conditions.append(LogRow.allocation_id.in_(self.allocation_ids))
        if self.agent_ids:
            conditions.append(LogRow.agent_id.in_(self.agent_ids))
        if self.container_ids:
            conditions.append(LogRow.container_id.in_(self.container_ids))
        if self.rank_ids:
            ranks = LogRow.rank_id.in_(self.rank_ids)
            conditions.append(or_(ranks, LogRow.rank_id.is_(None)) if -1 in self.rank_ids else ranks)
        if self.levels:
            conditions.append(LogRow.level.in_(self.levels))
        if self.sources:
            conditions.append(LogRow.source.in_(self.sources))
        if self.stdtypes:
            conditions.append(LogRow.stdtype.in_(self.stdtypes))
        if self.before is not None:
            conditions.append(LogRow.timestamp <= self.before)
        if self.after is not None:
            conditions.append(LogRow.timestamp > self.after)
        if self.text:
            conditions.append(LogRow.log.contains(self.text, autoescape=True))
        if self.words:
            conditions.append(contains_lowered(LogRow.log, self.words.lower()))
        return conditions


async def page(
    session: ReadSession,
    task_id: str,
    selection: Selection,
    *,
    after_id: int,
    most: int,
    newest_first: bool = False,
    max_characters: int = MAX_PAGE_CHARACTERS,
) -> Sequence[LogRow]:
    """Returns the next lines beyond ``after_id`` in the asked-for direction, or none at the end.

    At most ``most`` lines, and no further ones after ``max_characters``: a reader that has stopped reading keeps the
    page that it was given in memory.
    """
    order = LogRow.id.desc() if newest_first else LogRow.id.asc()
    beyond = (LogRow.id < after_id if after_id else true()) if newest_first else LogRow.id > after_id
    sizes = (
        select(LogRow.id, func.length(LogRow.log).label("size"))
        .where(LogRow.task_id == task_id, *selection.where(), beyond)
        .order_by(order)
        .limit(most)
        .subquery()
    )
    running = func.sum(sizes.c.size).over(order_by=sizes.c.id.desc() if newest_first else sizes.c.id)
    before = select(sizes.c.id, (running - sizes.c.size).label("characters")).subquery()
    fitting = select(before.c.id).where(before.c.characters < max_characters)
    return (await session.scalars(select(LogRow).where(LogRow.id.in_(fitting)).order_by(order))).all()


def is_full(rows: Sequence[LogRow], most: int, max_characters: int = MAX_PAGE_CHARACTERS) -> bool:
    """Returns True if a page may have ended before the last line."""
    return len(rows) == most or sum(len(row.log) for row in rows) >= max_characters


async def say(session: WriteSession, task_id: str, allocation_id: str, text: str, now: datetime, level: str) -> None:
    """Adds a line of the master to a task's log."""
    session.add_all(
        LogRow(
            task_id=task_id,
            allocation_id=allocation_id,
            timestamp=now,
            level=level,
            source="master",
            log=line,
            is_error=is_error(level, line),
        )
        for line in text.splitlines()
    )
    notify(session, notifications.logs(task_id))


FIELDS = ("allocation_id", "agent_id", "container_id", "rank_id", "source", "stdtype")
"""Columns by whose values people filter a log."""


async def newest_id(session: ReadSession, task_id: str) -> int:
    """Returns the id of the last line; 0 for an empty log."""
    return await session.scalar(select(func.max(LogRow.id)).where(LogRow.task_id == task_id)) or 0


async def distinct(session: ReadSession, task_id: str, after_id: int, to_id: int) -> dict[str, set[Any]]:
    """Returns the values of each column of ``FIELDS`` in the lines beyond ``after_id``, up to ``to_id``."""
    columns = [getattr(LogRow, name) for name in FIELDS]
    query = select(*columns).distinct().where(LogRow.task_id == task_id, LogRow.id > after_id, LogRow.id <= to_id)
    rows = (await session.execute(query)).all()
    return {name: {row[place] for row in rows if row[place] is not None} for place, name in enumerate(FIELDS)}


async def drop_some(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` lines of an experiment's trials and returns their number."""
    tasks = select(TrialRow.task_id).where(TrialRow.experiment_id == experiment_id)
    some = select(LogRow.id).where(LogRow.task_id.in_(tasks)).limit(most)
    return await delete_rows(session, LogRow, some)


def stored_bytes(connection: Connection, container_id: str, agent_id: str | None) -> int | None:
    """Returns how many bytes of a container's output are stored, or None if it is not of this agent."""
    return connection.scalar(_STORED, {"container_id": container_id, "agent_id": agent_id})


_C = table_of(ContainerRow)
_STORED = select(_C.c.output_offset).where(_C.c.id == bindparam("container_id"), _C.c.agent_id == bindparam("agent_id"))


def advance_offset(connection: Connection, container_id: str, end: int) -> None:
    """Records that the output is stored up to byte ``end``."""
    connection.execute(_ADVANCE, {"of_container": container_id, "end": end})


_ADVANCE = update(_C).where(_C.c.id == bindparam("of_container")).values(output_offset=bindparam("end"))


async def add_lines(session: WriteSession, values: Sequence[dict[str, Any]]) -> None:
    """Inserts a few log lines in the transaction of a session."""
    await insert_rows(session, _L, values)


def warn(connection: Connection, task_id: str, allocation_id: str | None, text: str, now: datetime) -> None:
    """Adds a warning of the master to a task's log. Runs in the group-commit writer's thread."""
    line = LogLine(task_id, text, now, "WARNING", allocation_id, source="master")
    insert_lines(connection, [line.values() | {"is_error": False}])


def insert_lines(connection: Connection, values: Sequence[dict[str, Any]]) -> None:
    """Inserts log lines. Runs in the group-commit writer's thread."""
    copy_rows(connection, _L, values)
