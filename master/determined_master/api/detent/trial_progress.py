"""Progress, attempts and marks of a trial."""

from fastapi import APIRouter

from determined.states import TrialState
from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import Anyone, ClockDep, Read, User
from determined_master.api.queries.attempts import Attempts, attempts_of
from determined_master.api.queries.environment_builds import builds_of
from determined_master.api.queries.experiment_status import note_of
from determined_master.api.queries.timeline_marks import TrialMarks, moments_of, on_curve
from determined_master.api.schemas.base import Number, RowId, Time, Wire
from determined_master.experiments import repository as experiment_rows
from determined_master.metrics.health import health_of
from determined_master.states.display_state import display_state
from determined_master.trials import repository as trial_rows
from determined_master.trials.timeline_queries import histories_of

router = APIRouter(prefix="/detent", tags=["detent"])


class Progress(Wire):
    """Progress of a trial, in a small answer for a line that is redrawn often."""

    state: str
    progress: float
    steps: int
    best_metric: Number | None
    metric_name: str
    started_at: Time
    waiting: str | None
    """Reason for waiting; None while it does not wait."""
    restarts: int
    run_id: int
    latest_checkpoint: str | None
    note: str | None
    """What is wrong with it although it has not failed."""


@router.get("/trials/{trial_id}/progress")
async def progress(trial_id: RowId, _principal: Anyone, session: Read, clock: ClockDep) -> Progress:
    row = await trial_rows.get(session, trial_id)
    experiment = await experiment_rows.get(session, row.experiment_id)
    live = await allocation_rows.live_of_task(session, row.task_id)
    waiting: str | None = (live.waiting or None) if live is not None else None
    if live is None and row.retry_at is not None and row.state is TrialState.ACTIVE:
        waiting = f"backing off after {row.system_failures} system failures in a row"
    build = (await builds_of(session, [row.task_id], experiment.config)).get(row.task_id) if live is None else None
    return Progress(
        state=display_state(row.state, [live.state] if live is not None else [], is_building=build is not None),
        progress=row.progress,
        steps=row.steps_completed,
        best_metric=row.searcher_metric_value,
        metric_name=experiment.searcher_metric,
        started_at=row.start_time,
        waiting=build.text if build else waiting,
        restarts=row.restarts,
        run_id=row.run_id,
        latest_checkpoint=row.latest_checkpoint,
        note=note_of(row, live, health_of(experiment.config).silent_after, clock.now()),
    )


@router.get("/trials/{trial_id}/attempts")
async def attempts(trial_id: RowId, _user: User, session: Read) -> Attempts:
    return Attempts(attempts=await attempts_of(session, await trial_rows.get(session, trial_id)))


@router.get("/trials/{trial_id}/marks")
async def get_trial_marks(trial_id: RowId, _principal: Anyone, session: Read) -> TrialMarks:
    (history,) = await histories_of(session, [await trial_rows.get(session, trial_id)])
    return TrialMarks(marks=on_curve(moments_of(history)))
