"""SQL for log pages: by id, each line cut to what is displayed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, LargeBinary, Row, Select, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from determined_master.db.models import LogRow
from determined_master.db.session import ReadSession
from determined_master.logs.error_lines import quoted_length
from determined_master.logs.repository import Selection

DISPLAY_LIMIT = 10_000
"""Maximum characters of a displayed line; the database cuts longer ones."""
MAX_CAUSES = 10
"""Number of lines about a cause whose quoted line is looked for."""
MAX_LAST_LINES = 300
"""Number of lines before the one about the cause that are compared with it."""
MAX_ERRORS = 1000
"""Number of error lines that are put into the order of time; what arrives late is a few lines late."""
_NOT_OF_TASK = ("agent", "master")
_LONGEST = 4
"""Maximum bytes of a character."""


class _Bytes(FunctionElement[bytes]):
    """A text as bytes: SQLite's functions end a text, but not its bytes, at a NUL."""

    type = LargeBinary()
    inherit_cache = True


@compiles(_Bytes, "sqlite")
def _as_blob(element: _Bytes, compiler: SQLCompiler, **more: object) -> str:
    return f"CAST({compiler.process(element.clauses, **more)} AS BLOB)"


@compiles(_Bytes)
def _converted(element: _Bytes, compiler: SQLCompiler, **more: object) -> str:
    return f"convert_to({compiler.process(element.clauses, **more)}, 'UTF8')"


class PagedLine(NamedTuple):
    id: int
    timestamp: datetime
    level: str
    rank_id: int | None
    allocation_id: str | None
    container_id: str | None
    agent_id: str | None
    source: str
    stdtype: str
    log: str
    length: int


class Extent(NamedTuple):
    first_id: int | None
    last_id: int | None
    errors: int


def _shown(*, whole: bool = False) -> Select[*tuple[Any, ...]]:
    data = _Bytes(LogRow.log)
    columns = [getattr(LogRow, name) for name in PagedLine._fields[:-2]]
    if whole:
        return select(*columns, LogRow.log)
    return select(*columns, _cut(), func.length(data), func.length(LogRow.log))


def _cut() -> ColumnElement[bytes]:
    """The beginning of a line, as bytes. SQLite gives NULL for a part of an empty blob."""
    return func.coalesce(func.substr(_Bytes(LogRow.log), 1, _LONGEST * DISPLAY_LIMIT), literal(b"", LargeBinary))


def _made(row: Row[*tuple[Any, ...]]) -> PagedLine:
    *columns, data, size, length = row
    text = bytes(data).decode("utf-8", "ignore")
    if size <= len(data):
        length = len(text)
    elif "\0" in text:
        length = size
    return PagedLine._make([*columns, text[:DISPLAY_LIMIT], length])


def _whole(row: Row[*tuple[Any, ...]]) -> PagedLine:
    return PagedLine._make([*row, len(row[-1])])


async def lines(
    session: ReadSession,
    task_id: str,
    selection: Selection,
    *,
    after: int | None = None,
    before: int | None = None,
    most: int,
    newest_first: bool = False,
) -> list[PagedLine]:
    """Returns the lines between two exclusive ids, in the given direction."""
    query = _shown().where(LogRow.task_id == task_id, *selection.where(), *_between(after, before))
    query = query.order_by(LogRow.id.desc() if newest_first else LogRow.id).limit(most)
    return [_made(row) for row in (await session.execute(query)).all()]


async def texts(
    session: ReadSession,
    task_id: str,
    selection: Selection,
    *,
    after: int | None,
    before: int | None,
    most: int,
    newest_first: bool,
) -> list[tuple[int, str]]:
    """Like ``lines``, but only ids and displayed texts: most of them are searched once and dropped."""
    query = select(LogRow.id, _cut()).where(LogRow.task_id == task_id, *selection.where(), *_between(after, before))
    query = query.order_by(LogRow.id.desc() if newest_first else LogRow.id).limit(most)
    rows = (await session.execute(query)).all()
    return [(row[0], bytes(row[1]).decode("utf-8", "ignore")[:DISPLAY_LIMIT]) for row in rows]


async def by_ids(session: ReadSession, ids: Sequence[int]) -> list[PagedLine]:
    """Returns the lines in the order of ``ids``."""
    found = {row[0]: row for row in (await session.execute(_shown().where(LogRow.id.in_(ids)))).all()}
    return [_made(found[line_id]) for line_id in ids]


async def far(
    session: ReadSession, task_id: str, *, after: int | None = None, before: int | None = None, lines: int
) -> int | None:
    """Returns the id that many lines after ``after``, or before ``before``; None if there are fewer."""
    query = select(LogRow.id).where(LogRow.task_id == task_id, *_between(after, before))
    query = query.order_by(LogRow.id if after is not None else LogRow.id.desc()).offset(lines - 1).limit(1)
    found: int | None = (await session.execute(query)).scalar_one_or_none()
    return found


async def has_lines(session: ReadSession, task_id: str, *, after: int | None = None, before: int | None = None) -> bool:
    query = select(literal(1)).where(LogRow.task_id == task_id, *_between(after, before))
    return (await session.execute(query.limit(1))).first() is not None


async def first_error(session: ReadSession, task_id: str, allocation_id: str | None = None) -> PagedLine | None:
    """Returns the first error line of a task or of one attempt: the task's own lines before those of agent and master.

    The first attempt with an error comes first, and within it the order of time: lines of several agents arrive in any
    order. If no line of an attempt looks like an error, it is the line that the master's sentence about the cause
    quotes. Command line, page and links all show this line.
    """
    columns = (LogRow.id, LogRow.allocation_id, LogRow.timestamp, LogRow.source)
    errors = select(*columns).where(LogRow.task_id == task_id, LogRow.is_error)
    if allocation_id is not None:
        errors = errors.where(LogRow.allocation_id == allocation_id)
    errors = errors.order_by(LogRow.id).limit(MAX_ERRORS)
    own = (await session.execute(errors.where(LogRow.source.not_in(_NOT_OF_TASK)))).all()
    others = (await session.execute(errors.where(LogRow.source.in_(_NOT_OF_TASK)).limit(MAX_CAUSES))).all()
    marked = {row.allocation_id for row in own}
    for row in others:
        is_earlier = not own or row.id < own[0].id
        if is_earlier and row.allocation_id not in marked:
            line = await _quoted(session, task_id, row.id, row.allocation_id)
            if line is not None:
                return line
    rows = own or others
    of_attempt = [row for row in rows if row.allocation_id == rows[0].allocation_id]
    if not of_attempt:
        return None
    first = min(of_attempt, key=lambda row: (row.timestamp, row.id))
    (line,) = await by_ids(session, [first.id])
    return line


async def _quoted(session: ReadSession, task_id: str, cause_id: int, allocation_id: str | None) -> PagedLine | None:
    """Returns the task's own line, among the last ones before the master's line about the cause, that it quotes."""
    (cause,) = await by_ids(session, [cause_id])
    sentence = cause.log.partition("\n")[0]
    before = await lines(session, task_id, Selection(), before=cause_id, most=MAX_LAST_LINES, newest_first=True)
    own = [line for line in before if line.allocation_id == allocation_id and line.source not in _NOT_OF_TASK]
    quoted = [(quoted_length(sentence, line.log), line) for line in own]
    longest = max((length for length, _ in quoted), default=0)
    if not longest:
        return None
    return min((line for length, line in quoted if length == longest), key=lambda line: (line.timestamp, line.id))


async def one(session: ReadSession, line_id: int) -> PagedLine | None:
    """Returns a line with its whole text."""
    row = (await session.execute(_shown(whole=True).where(LogRow.id == line_id))).first()
    return _whole(row) if row is not None else None


async def extent(session: ReadSession, task_id: str) -> Extent:
    columns_found = []
    for order in (LogRow.id, LogRow.id.desc()):
        query = select(LogRow.id).where(LogRow.task_id == task_id).order_by(order).limit(1)
        columns_found.append((await session.execute(query)).scalar_one_or_none())
    errors = select(func.count()).select_from(LogRow).where(LogRow.task_id == task_id, LogRow.is_error)
    return Extent(columns_found[0], columns_found[1], (await session.execute(errors)).scalar_one())


async def count(session: ReadSession, task_id: str, after: int, until: int) -> int:
    query = select(func.count()).select_from(LogRow)
    query = query.where(LogRow.task_id == task_id, LogRow.id > after, LogRow.id <= until)
    found: int = (await session.execute(query)).scalar_one()
    return found


def _between(after: int | None, before: int | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if after is not None:
        conditions.append(LogRow.id > after)
    if before is not None:
        conditions.append(LogRow.id < before)
    return conditions
