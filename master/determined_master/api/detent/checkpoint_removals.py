"""What a task that removes checkpoints reports about their files."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from determined_master.api.dependencies import ClockDep, DatabaseDep, Task
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import Empty, Wire
from determined_master.checkpoints import removal
from determined_master.tasks.checkpoint_removal import MAX_CHECKPOINTS

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["detent"])
MAX_REASON = 4000


class RemovalBody(Wire):
    """``failed``: why files are left, by checkpoint."""

    removed: Annotated[list[str], Field(max_length=MAX_CHECKPOINTS)]
    failed: Annotated[dict[str, Annotated[str, Field(max_length=MAX_REASON)]], Field(max_length=MAX_CHECKPOINTS)]


@router.post("/checkpoints/removed")
async def report(body: RemovalBody, principal: Task, database: DatabaseDep, clock: ClockDep) -> Empty:
    """Records removals by the task that was asked for them; may be repeated."""
    outcomes: dict[str, str | None] = {**dict.fromkeys(body.removed), **body.failed}
    async with database.write() as session:
        for row in await removal.handed_to(session, principal.task_id or "", list(outcomes)):
            await removal.record(session, clock, row, outcomes[row.uuid])
    return Empty()
