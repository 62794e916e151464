"""Checkpoints of one experiment or of all, newest first, page by page."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.dependencies import Read
from determined_master.wire.model import Number, Time, Wire

router = APIRouter(prefix="/detent", tags=["detent"])

ShownState = Literal["STATE_ACTIVE", "STATE_COMPLETED", "STATE_ERROR", "STATE_PARTIALLY_DELETED", "STATE_DELETED"]


class ListedCheckpoint(Wire):
    """``is_best``: of its experiment, by the searcher's metric. ``is_latest``: its trial goes on from here."""

    uuid: str
    trial_id: int
    experiment_id: int
    experiment_name: str
    steps: int
    time: Time
    state: ShownState
    size: int
    files: int
    is_best: bool
    is_latest: bool
    validation: Number | None


class CheckpointList(Wire):
    """``next``: for ``before=`` of the next page; None on the last one."""

    checkpoints: list[ListedCheckpoint]
    next: str | None


Before = Annotated[str, Query(max_length=128)]
Limit = Annotated[int, Query(ge=1, le=500)]
States = Annotated[list[str], Query(alias="state")]


@router.get("/experiments/{experiment_id}/checkpoints")
async def list_experiment_checkpoints(
    experiment_id: int,
    _principal: Anyone,
    session: Read,
    before: Before = "",
    limit: Limit = 100,
    states: States = [],  # noqa: B006
) -> CheckpointList:
    raise NotImplementedYet


@router.get("/checkpoints")
async def list_checkpoints(
    _principal: Anyone,
    session: Read,
    before: Before = "",
    limit: Limit = 100,
    experiment_id: Annotated[int | None, Query(alias="experimentId")] = None,
    states: States = [],  # noqa: B006
) -> CheckpointList:
    raise NotImplementedYet
