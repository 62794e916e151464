"""Logs of trials and tasks as streams."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator

from determined.errors import BadRequest
from determined_master.api.dependencies import DatabaseDep, LogTurnsDep, MatchersDep, Read, Reader
from determined_master.api.json_lines import json_lines
from determined_master.api.queries.log_tail import fields, read
from determined_master.api.schemas.base import BoundedInt, Moment, RowId, Wire, rfc3339
from determined_master.api.schemas.enums import asked_level, is_descending, log_level
from determined_master.api.schemas.logs import message
from determined_master.db.models import LogRow
from determined_master.logs.matching import check_expression
from determined_master.logs.repository import Selection
from determined_master.tasks import repository as tasks
from determined_master.trials import repository as trial_rows

router = APIRouter(prefix="/api/v1", tags=["logs"])


AskedLevel = Annotated[str, AfterValidator(asked_level)]


class LogQuery(Wire):
    """The query of every log stream. What is wrong with it is said before a stream begins."""

    allocation_ids: Annotated[list[str], Query()] = []
    agent_ids: Annotated[list[str], Query()] = []
    container_ids: Annotated[list[str], Query()] = []
    rank_ids: Annotated[list[BoundedInt], Query()] = []
    levels: Annotated[list[AskedLevel], Query()] = []
    sources: Annotated[list[str], Query()] = []
    stdtypes: Annotated[list[str], Query()] = []
    timestamp_before: Moment | None = None
    timestamp_after: Moment | None = None
    search_text: str = ""
    enable_regex: bool = False
    limit: BoundedInt = 0
    order_by: str = ""
    follow: bool = False

    @property
    def expression(self) -> str:
        return self.search_text if self.enable_regex else ""

    def check(self) -> None:
        """Raises BadRequest for values that exclude each other, for an unknown order or expression."""
        if self.follow and self.limit > 0:
            raise BadRequest("limit and follow exclude each other")
        is_descending(self.order_by)
        check_expression(self.expression)

    def selection(self) -> Selection:
        return Selection(
            allocation_ids=tuple(self.allocation_ids),
            agent_ids=tuple(self.agent_ids),
            container_ids=tuple(self.container_ids),
            rank_ids=tuple(self.rank_ids),
            levels=tuple(self.levels),
            sources=tuple(self.sources),
            stdtypes=tuple(self.stdtypes),
            before=self.timestamp_before,
            after=self.timestamp_after,
            text="" if self.enable_regex else self.search_text,
        )


Asked = Annotated[LogQuery, Query()]


@router.get("/trials/{trial_id}/logs")
async def trial_logs(
    trial_id: RowId,
    asked: Asked,
    _principal: Reader,
    session: Read,
    database: DatabaseDep,
    matchers: MatchersDep,
    turns: LogTurnsDep,
) -> StreamingResponse:
    asked.check()
    row = await trial_rows.get(session, trial_id)
    return json_lines(_shown(database, matchers, turns, row.task_id, asked, trial_id))


@router.get("/tasks/{task_id}/logs")
async def task_logs(
    task_id: str,
    asked: Asked,
    _principal: Reader,
    session: Read,
    database: DatabaseDep,
    matchers: MatchersDep,
    turns: LogTurnsDep,
) -> StreamingResponse:
    asked.check()
    await tasks.get(session, task_id)
    return json_lines(_shown(database, matchers, turns, task_id, asked, None))


@router.get("/trials/{trial_id}/logs/fields")
async def trial_fields(
    trial_id: RowId, _principal: Reader, session: Read, database: DatabaseDep, follow: bool = False
) -> StreamingResponse:
    row = await trial_rows.get(session, trial_id)
    return json_lines(_fields(database, row.task_id, follow))


@router.get("/tasks/{task_id}/logs/fields")
async def task_fields(
    task_id: str, _principal: Reader, session: Read, database: DatabaseDep, follow: bool = False
) -> StreamingResponse:
    await tasks.get(session, task_id)
    return json_lines(_fields(database, task_id, follow))


async def _shown(
    database: DatabaseDep,
    matchers: MatchersDep,
    turns: LogTurnsDep,
    task_id: str,
    asked: LogQuery,
    trial_id: int | None,
) -> AsyncIterator[bytes]:
    """Yields the lines of JSON of each page."""

    def lines(rows: Sequence[LogRow]) -> bytes:
        return b"".join(json.dumps({"result": _entry(row, trial_id)}).encode() + b"\n" for row in rows)

    pages = read(
        database,
        task_id,
        asked.selection(),
        matchers,
        turns,
        lines,
        expression=asked.expression,
        limit=max(0, asked.limit),
        newest_first=is_descending(asked.order_by),
        follow=asked.follow,
    )
    async for page in pages:
        yield page


async def _fields(database: DatabaseDep, task_id: str, follow: bool) -> AsyncIterator[dict[str, Any]]:
    async for fields_of_line in fields(database, task_id, follow=follow):
        yield {
            "allocationIds": fields_of_line["allocation_id"],
            "agentIds": fields_of_line["agent_id"],
            "containerIds": fields_of_line["container_id"],
            "rankIds": fields_of_line["rank_id"],
            "sources": fields_of_line["source"],
            "stdtypes": fields_of_line["stdtype"],
        }


def _entry(row: LogRow, trial_id: int | None) -> dict[str, Any]:
    text = row.log.removesuffix("\n")  # as some shippers send it
    entry: dict[str, Any] = {
        "id": str(row.id),
        "level": log_level(row.level),
        "message": message(row.timestamp, row.container_id, row.rank_id, row.level, text),
        "log": f"{text}\n",
        "timestamp": rfc3339(row.timestamp),
        "agentId": row.agent_id,
        "allocationId": row.allocation_id,
        "containerId": row.container_id,
        "rankId": row.rank_id,
        "source": row.source,
        "stdtype": row.stdtype,
        "taskId": row.task_id,
    }
    if trial_id is not None:
        entry["trialId"] = trial_id
    return entry
