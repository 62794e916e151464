"""The job queue: list, counts, changes of order, priority, weight and pool."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from determined.errors import BadRequest
from determined.states import TaskKind
from determined_master.api.dependencies import Anyone, ManagersDep, Owner, QueueUpdatesDep, Read, SettingsDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import page
from determined_master.api.schemas.base import BoundedInt, Empty, Wire
from determined_master.api.schemas.enums import is_descending
from determined_master.api.schemas.jobs import (
    MAX_CHANGES,
    FullJob,
    Job,
    JobsAnswer,
    JobSummary,
    QueueControl,
    changes_of,
)
from determined_master.db.session import ReadSession
from determined_master.jobs import queue_queries
from determined_master.jobs.queue_queries import JobEntry
from determined_master.settings.pool_settings import unknown
from determined_master.settings.settings import Settings

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["jobs"])
STATES = ("STATE_QUEUED", "STATE_SCHEDULED", "STATE_SCHEDULED_BACKFILLED")


class JobQuery(Wire):
    """The query of the list of jobs."""

    resource_pool: str = ""
    states: Annotated[list[str], Query()] = []
    order_by: str = ""
    offset: BoundedInt = 0
    limit: BoundedInt = 0


class UpdateBody(Wire):
    updates: list[QueueControl] = Field(default=[], max_length=MAX_CHANGES)


class QueueStats(Wire):
    queued_count: int
    scheduled_count: int


class PoolStats(Wire):
    resource_pool: str
    stats: QueueStats
    aggregates: list[Any] = []


class StatsAnswer(Wire):
    results: list[PoolStats]


@router.get("/job-queues-v2")
async def list_jobs(
    _principal: Anyone, session: Read, settings: SettingsDep, query: Annotated[JobQuery, Query()]
) -> JobsAnswer:
    """Lists the jobs of a pool that wait or run, in the order of the queue."""
    pool = query.resource_pool or settings.default_pool
    wanted = {each for each in query.states if each != "STATE_UNSPECIFIED"}
    if not wanted <= set(STATES):
        raise BadRequest(f"unknown state; valid states: {', '.join(STATES)}")
    shown = [each for each in await jobs_of(session, settings, pool) if not wanted or each.summary.state in wanted]
    if is_descending(query.order_by):
        shown.reverse()
    part, pagination = page(shown, query.offset, query.limit)
    return JobsAnswer(jobs=[FullJob(full=each) for each in part], pagination=pagination)


@router.get("/job-queues/stats")
async def stats(
    _principal: Anyone,
    session: Read,
    managers: ManagersDep,
    settings: SettingsDep,
    resource_pools: Annotated[list[str], Query(alias="resourcePools")] = [],  # noqa: B006  # FastAPI copies it
) -> StatsAnswer:
    """Returns how many allocations of each pool wait and run."""
    results = []
    for pool in resource_pools or list(settings.pools):
        _check(pool, settings)
        found = await managers.capacity(session, pool)
        counts = QueueStats(queued_count=found.queued, scheduled_count=found.scheduled)
        results.append(PoolStats(resource_pool=pool, stats=counts))
    return StatsAnswer(results=results)


@router.post("/job-queues")
async def update(body: UpdateBody, user: Owner, updates: QueueUpdatesDep) -> Empty:
    """Applies all changes, or none and the errors of all."""
    await updates.apply(changes_of(body.updates), user)
    return Empty()


async def jobs_of(session: ReadSession, settings: Settings, pool: str) -> Sequence[Job]:
    """Returns the jobs of a pool in the order of the queue. Raises BadRequest for an unknown pool."""
    _check(pool, settings)
    scheduler = settings.pools[pool].scheduler
    has_order = scheduler is None or scheduler.type == "priority"
    entries = await queue_queries.queue(session, pool)
    ahead = 0
    shown = []
    for each in entries:
        shown.append(_job(each, ahead if has_order else -1))
        ahead += each.running == 0
    return shown


def _check(pool: str, settings: Settings) -> None:
    if pool not in settings.pools:
        raise BadRequest("; ".join(unknown(pool, settings.pools)))


def _job(entry: JobEntry, ahead: int) -> Job:
    is_experiment = entry.kind is TaskKind.TRIAL
    is_scheduled = entry.running > 0
    return Job(
        job_id=entry.job_id,
        type="TYPE_EXPERIMENT" if is_experiment else f"TYPE_{entry.kind.wire}",
        entity_id=entry.entity_id,
        name=entry.name,
        username=entry.username,
        user_id=entry.user_id,
        submission_time=entry.submitted_at,
        resource_pool=entry.pool,
        is_preemptible=is_experiment,
        priority=entry.priority,
        weight=entry.weight,
        requested_slots=entry.requested_slots,
        allocated_slots=entry.allocated_slots,
        progress=entry.progress or 0.0,
        workspace_id=entry.workspace_id,
        summary=JobSummary(
            state="STATE_SCHEDULED" if is_scheduled else "STATE_QUEUED",
            jobs_ahead=0 if is_scheduled and ahead >= 0 else ahead,
        ),
    )
