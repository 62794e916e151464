"""Logs by page: from any line on, forwards, backwards and around, filtered and searched; the first error; download."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.logs.wire import FirstError, LogExtent, LogPage, WholeLine
from determined_master.wire.model import Wire

router = APIRouter(prefix="/detent", tags=["logs"])


class PageQuery(Wire):
    """Of ``before``, ``after`` and ``around`` one at most; without any, the newest lines."""

    before: int | None = None
    after: int | None = None
    around: int | None = None
    limit: Annotated[int, Field(ge=1, le=2000)] = 500
    levels: Annotated[list[str], Query()] = []
    rank_ids: Annotated[list[int], Query()] = []
    """-1: lines without a rank."""
    sources: Annotated[list[str], Query()] = []
    stdtypes: Annotated[list[str], Query()] = []
    allocation_ids: Annotated[list[str], Query()] = []
    search: Annotated[str, Field(max_length=1000)] = ""
    regex: bool = False


@router.get("/trials/{trial_id}/logs")
async def log_page(trial_id: int, asked: Annotated[PageQuery, Query()], _principal: Anyone) -> LogPage:
    raise NotImplementedYet("pages of logs come with the next commit")


@router.get("/trials/{trial_id}/logs/first-error")
async def log_first_error(trial_id: int, _principal: Anyone) -> FirstError:
    raise NotImplementedYet("the first error comes with the next commit")


@router.get("/trials/{trial_id}/logs/extent")
async def log_extent(trial_id: int, _principal: Anyone) -> LogExtent:
    raise NotImplementedYet("the extent comes with the next commit")


@router.get("/trials/{trial_id}/logs/download", response_class=StreamingResponse)
async def log_download(trial_id: int, _principal: Anyone) -> StreamingResponse:
    raise NotImplementedYet("downloads come with the next commit")


@router.get("/logs/lines/{line_id}")
async def log_line(line_id: int, _principal: Anyone) -> WholeLine:
    raise NotImplementedYet("whole lines come with the next commit")
