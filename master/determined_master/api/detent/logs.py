"""Log pages in both directions, filtered and searched; the first error; download."""

from collections.abc import AsyncIterator
from typing import Annotated, get_args

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from determined.errors import BadRequest, NotFound
from determined_master.api.dependencies import DatabaseDep, LineCountsDep, LogTurnsDep, MatchersDep, Read, Reader
from determined_master.api.schemas.base import BoundedInt, RowId, Wire
from determined_master.api.schemas.enums import plain_level
from determined_master.api.schemas.logs import FirstError, Level, Line, LogExtent, LogPage, WholeLine, message, run_of
from determined_master.db.session import Database
from determined_master.logs import log_queries, repository
from determined_master.logs.log_pager import LogQuestion, page
from determined_master.logs.log_queries import PagedLine
from determined_master.logs.repository import Selection
from determined_master.logs.turns import Turns
from determined_master.trials import repository as trial_rows

DOWNLOAD_PAGE = 500
_LEVELS: dict[str, Level] = {level: level for level in get_args(Level)}
router = APIRouter(prefix="/detent", tags=["logs"])


LineId = Annotated[int, Field(ge=-1, lt=2**63)]
"""-1 and 0 are places before the first line, whose id is 1."""


class PageQuery(Wire):
    """At most one of ``before``, ``after`` and ``around``; without any the newest lines are returned."""

    before: LineId | None = None
    after: LineId | None = None
    around: LineId | None = None
    limit: Annotated[int, Field(ge=1, le=2000)] = 500
    levels: Annotated[list[str], Query()] = []
    rank_ids: Annotated[list[BoundedInt], Query()] = []
    """-1 selects lines without a rank."""
    sources: Annotated[list[str], Query()] = []
    stdtypes: Annotated[list[str], Query()] = []
    allocation_ids: Annotated[list[str], Query()] = []
    search: Annotated[str, Field(max_length=1000)] = ""
    """A case-insensitive text, or with ``regex`` a case-sensitive expression."""
    regex: bool = False

    def asked(self) -> LogQuestion:
        if sum(bound is not None for bound in (self.before, self.after, self.around)) > 1:
            raise BadRequest("before, after and around exclude each other")
        selection = Selection(
            allocation_ids=tuple(self.allocation_ids),
            rank_ids=tuple(self.rank_ids),
            levels=tuple(plain_level(level) for level in self.levels),
            sources=tuple(self.sources),
            stdtypes=tuple(self.stdtypes),
            words="" if self.regex else self.search,
        )
        expression = self.search if self.regex else ""
        return LogQuestion(selection, expression, self.before, self.after, self.around, self.limit)


@router.get("/trials/{trial_id}/logs")
async def log_page(
    trial_id: RowId, asked: Annotated[PageQuery, Query()], _principal: Reader, session: Read, matchers: MatchersDep
) -> LogPage:
    row = await trial_rows.get(session, trial_id)
    lines_page = await page(session, matchers, row.task_id, asked.asked())
    return LogPage(
        lines=[line_of(line) for line in lines_page.lines],
        at_start=lines_page.at_start,
        at_end=lines_page.at_end,
        first_id=lines_page.lines[0].id if lines_page.lines else None,
        last_id=lines_page.lines[-1].id if lines_page.lines else None,
        scanned_to=lines_page.scanned_to,
    )


@router.get("/trials/{trial_id}/logs/first-error")
async def log_first_error(
    trial_id: RowId,
    _principal: Reader,
    session: Read,
    allocation_id: Annotated[str, Query(alias="allocationId", max_length=80)] = "",
) -> FirstError:
    """Returns the first error of the trial, or of one attempt of it."""
    row = await trial_rows.get(session, trial_id)
    found = await log_queries.first_error(session, row.task_id, allocation_id or None)
    return FirstError(line=line_of(found) if found is not None else None)


@router.get("/trials/{trial_id}/logs/extent")
async def log_extent(
    trial_id: RowId, _principal: Reader, session: Read, log_counts: LineCountsDep, line: LineId | None = None
) -> LogExtent:
    row = await trial_rows.get(session, trial_id)
    found = await log_queries.extent(session, row.task_id)
    count = await log_counts.of(session, row.task_id, found.last_id)
    number = None if line is None else await log_counts.number(session, row.task_id, found, line)
    return LogExtent(count=count, first_id=found.first_id, last_id=found.last_id, errors=found.errors, number=number)


@router.get("/trials/{trial_id}/logs/download", response_class=StreamingResponse)
async def log_download(
    trial_id: RowId, _principal: Reader, session: Read, database: DatabaseDep, turns: LogTurnsDep
) -> StreamingResponse:
    row = await trial_rows.get(session, trial_id)
    return StreamingResponse(
        _texts(database, turns, row.task_id),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="trial-{trial_id}.log"'},
    )


@router.get("/logs/lines/{line_id}")
async def log_line(line_id: RowId, _principal: Reader, session: Read) -> WholeLine:
    found = await log_queries.one(session, line_id)
    if found is None:
        raise NotFound(f"line '{line_id}' not found")
    return WholeLine(line=line_of(found))


async def _texts(database: Database, turns: Turns, task_id: str) -> AsyncIterator[bytes]:
    """Yields the log in pages, each from a session of its own: no session lives as long as the download."""
    after = 0
    while True:
        async with turns:
            async with database.read() as session:
                lines = await repository.page(session, task_id, Selection(), after_id=after, most=DOWNLOAD_PAGE)
            if not lines:
                return
            after = lines[-1].id
            texts = (message(each.timestamp, each.container_id, each.rank_id, each.level, each.log) for each in lines)
            page = "".join(texts).encode("utf-8", "replace")
        yield page


def line_of(row: PagedLine) -> Line:
    return Line(
        id=row.id,
        time=row.timestamp,
        level=_LEVELS.get(row.level, ""),
        rank=row.rank_id,
        run_id=run_of(row.allocation_id),
        allocation_id=row.allocation_id,
        container_id=row.container_id,
        agent_id=row.agent_id,
        source=row.source,
        stdtype=row.stdtype,
        text=row.log,
        length=row.length,
    )
