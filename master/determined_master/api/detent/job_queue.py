"""Changes of the job queue, with what they changed or would change."""

from fastapi import APIRouter
from pydantic import Field

from determined_master.api.dependencies import Owner, QueueUpdatesDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import Wire
from determined_master.api.schemas.jobs import MAX_CHANGES, QueueControl, changes_of

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["detent"])


class UpdateBody(Wire):
    updates: list[QueueControl] = Field(default=[], max_length=MAX_CHANGES)
    dry_run: bool = False


class ChangedJob(Wire):
    job_id: str
    fields: list[str]
    passed: list[str]
    """Jobs that were ahead of it and are behind it now."""


class UpdateAnswer(Wire):
    changes: list[ChangedJob]


@router.post("/job-queues")
async def update(body: UpdateBody, user: Owner, updates: QueueUpdatesDep) -> UpdateAnswer:
    """Applies all changes, or none and the errors of all."""
    done = await updates.apply(changes_of(body.updates), user, dry_run=body.dry_run)
    return UpdateAnswer(
        changes=[ChangedJob(job_id=each.job_id, fields=list(each.fields), passed=list(each.passed)) for each in done]
    )
