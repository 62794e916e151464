"""Puts trials together with what belongs to them, in as few queries as there are kinds."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from determined.states import AllocationState, CheckpointState, TrialState
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import trials as schemas
from determined_master.api.schemas.enums import state
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.db.models import CheckpointRow, MetricRow, TrialRow
from determined_master.metrics import repository as metric_rows

_FINER = {
    AllocationState.PENDING: "QUEUED",
    AllocationState.ASSIGNED: "STARTING",
    AllocationState.PULLING: "PULLING",
    AllocationState.STARTING: "STARTING",
    AllocationState.RUNNING: "RUNNING",
    AllocationState.TERMINATING: "RUNNING",
}


async def show(session: AsyncSession, rows: Sequence[TrialRow]) -> list[schemas.Trial]:
    tasks = [row.task_id for row in rows]
    live = {a.task_id: _FINER[a.state] for a in await allocation_rows.live_of_tasks(session, tasks)}
    ids = {i for row in rows for i in (row.best_validation_id, row.latest_validation_id) if i is not None}
    validations = await metric_rows.by_ids(session, ids)
    checkpoints: dict[str, list[CheckpointRow]] = {}
    for checkpoint in await checkpoint_rows.of_tasks(session, tasks, [CheckpointState.COMPLETED]):
        checkpoints.setdefault(checkpoint.task_id, []).append(checkpoint)
    return [
        schemas.trial(
            row,
            shown_state=live.get(row.task_id, "QUEUED"),
            best=validations.get(row.best_validation_id or 0),
            latest=validations.get(row.latest_validation_id or 0),
            best_checkpoint=_best(checkpoints.get(row.task_id, []), validations.get(row.best_validation_id or 0)),
        )
        for row in rows
    ]


async def states(session: AsyncSession, rows: Sequence[TrialRow]) -> dict[int, str]:
    """What each is shown as, by its id."""
    live = {a.task_id: _FINER[a.state] for a in await allocation_rows.live_of_tasks(session, [r.task_id for r in rows])}
    return {
        row.id: state(live.get(row.task_id, "QUEUED") if row.state is TrialState.ACTIVE else row.state) for row in rows
    }


async def workloads(
    session: AsyncSession, row: TrialRow, *, groups: Sequence[str], batches: bool
) -> list[schemas.WorkloadContainer]:
    """Reports and checkpoints in the order of their steps; at one step training, validation, checkpoint."""
    found: list[tuple[int, int, schemas.WorkloadContainer]] = []
    for metric in await metric_rows.shown(session, [row.id], groups):
        shown = schemas.metrics_workload(metric, batches=batches)
        if metric.group == "validation":
            found.append((metric.steps or 0, 1, schemas.WorkloadContainer(validation=shown)))
        else:
            found.append((metric.steps or 0, 0, schemas.WorkloadContainer(training=shown)))
    for checkpoint in await checkpoint_rows.of_tasks(session, [row.task_id]):
        shown_checkpoint = schemas.checkpoint_workload(checkpoint)
        found.append((checkpoint.steps_completed, 2, schemas.WorkloadContainer(checkpoint=shown_checkpoint)))
    found.sort(key=lambda item: item[:2])
    return [container for _, _, container in found]


def _best(checkpoints: Sequence[CheckpointRow], validation: MetricRow | None) -> CheckpointRow | None:
    if validation is None:
        return None
    return next((c for c in reversed(checkpoints) if c.steps_completed == validation.steps), None)
