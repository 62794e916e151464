"""What is ours beside the older API: contexts by hash, why a trial waits and how far it is, curves."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse

from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import Anyone, Read, ServicesDep, User, agent
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries.attempts import Attempts, attempts_of
from determined_master.api.schemas.base import Json, Number, RowId, Time, Wire
from determined_master.experiments import repository as experiment_rows
from determined_master.metrics import repository as metric_rows
from determined_master.trials import repository as trial_rows

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["detent"])


class Progress(Wire):
    """How far a trial is, in one small answer for a line that is drawn again and again."""

    state: str
    progress: float
    steps: int
    best_metric: Number | None
    metric_name: str
    started_at: Time
    waiting: str | None
    """Why it waits, in words; None while it does not."""
    restarts: int
    run_id: int
    latest_checkpoint: str | None


class Point(Wire):
    steps: int
    metrics: Json


class Curve(Wire):
    id: int
    points: list[Point]


class Curves(Wire):
    trials: list[Curve]


@router.head("/contexts/{digest}")
async def has_context(digest: str, _principal: Anyone, services: ServicesDep) -> Response:
    services.blobs.path(digest)
    return Response()


@router.put("/contexts/{digest}")
async def put_context(digest: str, request: Request, _user: User, services: ServicesDep) -> dict[str, Any]:
    # A tar has headers and padding beyond the content that the limit counts.
    await services.blobs.receive(digest, request.stream(), 2 * services.settings.context_limit)
    return {}


@router.get("/contexts/{digest}", dependencies=[Depends(agent)])
async def get_context(digest: str, services: ServicesDep) -> FileResponse:
    return FileResponse(services.blobs.path(digest), media_type="application/zstd")


@router.get("/trials/{trial_id}/progress")
async def progress(trial_id: RowId, _principal: Anyone, session: Read) -> Progress:
    row = await trial_rows.get(session, trial_id)
    experiment = await experiment_rows.get(session, row.experiment_id)
    live = await allocation_rows.live_of_task(session, row.task_id)
    waiting: str | None = (live.waiting or None) if live is not None else None
    if live is None and row.retry_at is not None and row.state.value == "ACTIVE":
        waiting = f"backs off after {row.system_failures} failures of the system in a row"
    word = row.state.value
    if word == "ACTIVE":
        word = live.state.value if live else "QUEUED"
    elif word == "PAUSED" and live is not None:
        word = "PAUSING"
    return Progress(
        state=word,
        progress=row.progress,
        steps=row.steps_completed,
        best_metric=row.searcher_metric_value,
        metric_name=experiment.searcher_metric,
        started_at=row.start_time,
        waiting=waiting,
        restarts=row.restarts,
        run_id=row.run_id,
        latest_checkpoint=row.latest_checkpoint,
    )


@router.get("/trials/{trial_id}/attempts")
async def attempts(trial_id: RowId, _user: User, session: Read) -> Attempts:
    return Attempts(attempts=await attempts_of(session, await trial_rows.get(session, trial_id)))


@router.get("/experiments/{experiment_id}/curve")
async def curve(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    group: Annotated[str, Query()] = "validation",
) -> Curves:
    await experiment_rows.get(session, experiment_id)
    found = []
    for trial in await trial_rows.of_experiment(session, experiment_id):
        rows = await metric_rows.shown(session, [trial.id], [group])
        points = [Point(steps=row.steps, metrics=row.metrics) for row in rows if row.steps is not None]
        found.append(Curve(id=trial.id, points=points))
    return Curves(trials=found)
