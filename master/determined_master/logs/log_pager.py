"""Log pages in either direction, filtered and searched, with a bound on the work of one request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from determined.errors import BadRequest
from determined_master.db.session import ReadSession
from determined_master.logs import log_queries
from determined_master.logs.log_queries import PagedLine
from determined_master.logs.matching import Matcher, Matchers, OutOfTime
from determined_master.logs.repository import Selection

SCANNED = 50_000
"""Maximum number of lines that one request examines."""
PAGE = 1000


@dataclass(frozen=True)
class LogQuestion:
    selection: Selection
    expression: str = ""
    before: int | None = None
    after: int | None = None
    around: int | None = None
    limit: int = 500

    @property
    def is_filtered(self) -> bool:
        return bool(self.expression or self.selection.where())


@dataclass(frozen=True)
class Page:
    """``scanned_to``: where a page without lines goes on; around a line, that is the newer side until it is over."""

    lines: list[PagedLine]
    at_start: bool
    at_end: bool
    scanned_to: int | None


@dataclass(frozen=True)
class _Walk:
    """Matches from one line on, in the direction of the search."""

    lines: list[PagedLine]
    is_over: bool
    scanned_to: int | None


async def page(session: ReadSession, matchers: Matchers, task_id: str, asked: LogQuestion) -> Page:
    """Returns a page. Raises BadRequest for an expression that is invalid or takes too long."""
    async with _matching(matchers, asked.expression) as match:
        if asked.around is not None:
            half = asked.limit // 2
            older = await _walk(session, task_id, asked, match, before=asked.around, limit=half)
            newer = await _walk(session, task_id, asked, match, after=asked.around - 1, limit=asked.limit - half)
            lines = older.lines[::-1] + newer.lines
            unfinished = older if newer.is_over else newer
            return Page(lines, older.is_over, newer.is_over, None if lines else unfinished.scanned_to)
        if asked.after is not None:
            newer = await _walk(session, task_id, asked, match, after=asked.after, limit=asked.limit)
            has_older = await log_queries.has_lines(session, task_id, before=asked.after + 1)
            return Page(newer.lines, not has_older, newer.is_over, newer.scanned_to)
        older = await _walk(session, task_id, asked, match, before=asked.before, limit=asked.limit)
        has_newer = asked.before is not None and await log_queries.has_lines(session, task_id, after=asked.before - 1)
        return Page(older.lines[::-1], older.is_over, not has_newer, older.scanned_to)


@asynccontextmanager
async def _matching(matchers: Matchers, expression: str) -> AsyncIterator[Matcher | None]:
    if not expression:
        yield None
        return
    async with matchers.of(expression) as match:
        yield match


async def _walk(
    session: ReadSession,
    task_id: str,
    asked: LogQuestion,
    match: Matcher | None,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int,
) -> _Walk:
    """Searches upwards from ``after`` or downwards from ``before``; None means from the newest line."""
    is_down = after is None
    bound: int | None = None
    if asked.is_filtered:
        bound = await log_queries.far(session, task_id, after=after, before=before, lines=SCANNED)
    if bound is not None:
        after, before = (bound - 1, before) if is_down else (after, bound + 1)
    if match is None:
        lines = await log_queries.lines(
            session, task_id, asked.selection, after=after, before=before, most=limit + 1, newest_first=is_down
        )
        if len(lines) > limit:
            return _Walk(lines[:limit], False, None)
        return _Walk(lines, bound is None, bound)
    return await _search(session, task_id, asked, match, after, before, is_down, limit, bound)


async def _search(
    session: ReadSession,
    task_id: str,
    asked: LogQuestion,
    match: Matcher,
    after: int | None,
    before: int | None,
    is_down: bool,
    limit: int,
    bound: int | None,
) -> _Walk:
    line_ids: list[int] = []
    seen: int | None = None
    while True:
        lines = await log_queries.texts(
            session, task_id, asked.selection, after=after, before=before, most=PAGE, newest_first=is_down
        )
        try:
            places = await match.matching([text for _, text in lines])
        except OutOfTime:
            if seen is None:
                raise BadRequest(
                    "the regular expression takes too long, which nested repetitions can cause; use a simpler one, "
                    "or search for plain text"
                ) from None
            return _Walk(await log_queries.by_ids(session, line_ids), False, seen)
        line_ids += [line_id for place, (line_id, _) in enumerate(lines) if place in places]
        if len(line_ids) > limit:
            return _Walk(await log_queries.by_ids(session, line_ids[:limit]), False, None)
        if len(lines) < PAGE:
            return _Walk(await log_queries.by_ids(session, line_ids), bound is None, bound)
        seen = lines[-1][0]
        after, before = (after, seen) if is_down else (seen, before)
