"""Wire models of jobs."""

from collections.abc import Sequence

from determined_master.api.schemas.base import BoundedInt, Name, Pagination, Time, Wire
from determined_master.jobs.queue_decision import QueueChange

MAX_CHANGES = 100
"""Changes in one request."""


class JobSummary(Wire):
    state: str
    jobs_ahead: int
    """Number of waiting jobs ahead of it; -1 where shares decide, not an order."""


class Job(Wire):
    job_id: str
    type: str
    entity_id: str
    name: str
    username: str
    user_id: int
    submission_time: Time
    resource_pool: str
    is_preemptible: bool
    priority: int
    weight: float
    requested_slots: int
    allocated_slots: int
    progress: float
    workspace_id: int
    summary: JobSummary


class FullJob(Wire):
    full: Job
    limited: None = None
    """Older clients show it to users without rights; every user may read all of a job."""


class JobsAnswer(Wire):
    jobs: list[FullJob]
    pagination: Pagination


class QueueControl(Wire):
    """``ahead_of`` and ``behind_of`` name a job of the same pool, whose priority the moved job takes."""

    job_id: Name
    ahead_of: Name | None = None
    behind_of: Name | None = None
    priority: BoundedInt | None = None
    weight: float | None = None
    resource_pool: Name | None = None


def changes_of(updates: Sequence[QueueControl]) -> list[QueueChange]:
    return [
        QueueChange(
            job_id=each.job_id,
            ahead_of=each.ahead_of or "",
            behind_of=each.behind_of or "",
            priority=each.priority,
            weight=each.weight,
            pool=each.resource_pool or "",
        )
        for each in updates
    ]
