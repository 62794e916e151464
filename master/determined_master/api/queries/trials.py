"""Loads trials with their metrics and checkpoints, in one query per kind."""

from collections.abc import Sequence

from determined.states import CheckpointState, TrialState
from determined_master.allocations import environment_wait_repository
from determined_master.allocations import repository as allocation_rows
from determined_master.api.schemas import trials as schemas
from determined_master.api.schemas.enums import wire_state
from determined_master.checkpoints import repository as checkpoint_rows
from determined_master.db.models import CheckpointRow, MetricRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.batches import batched
from determined_master.logs import policy_match_repository
from determined_master.metrics import repository as metric_rows
from determined_master.states.display_state import display_state

OF_WORKLOADS = ("training", "validation")
MAX_TRIALS_A_STATEMENT = 10_000


async def show(session: ReadSession, rows: Sequence[TrialRow]) -> list[schemas.Trial]:
    return [shown for some in batched(rows, MAX_TRIALS_A_STATEMENT) for shown in await _show(session, some)]


async def _show(session: ReadSession, rows: Sequence[TrialRow]) -> list[schemas.Trial]:
    tasks = [row.task_id for row in rows]
    shown = await displayed(session, rows)
    ids = {i for row in rows for i in (row.best_validation_id, row.latest_validation_id) if i is not None}
    validations = await metric_rows.by_ids(session, ids)
    checkpoints: dict[str, list[CheckpointRow]] = {}
    for checkpoint in await checkpoint_rows.of_tasks(session, tasks, [CheckpointState.COMPLETED]):
        checkpoints.setdefault(checkpoint.task_id, []).append(checkpoint)
    has_failed = [row.task_id for row in rows if row.state is TrialState.ERROR]
    failures = await allocation_rows.newest_failures(session, has_failed)
    policies = await policy_match_repository.newest_names(session, tasks)
    return [
        schemas.trial(
            row,
            policy=policies.get(row.task_id),
            failure=failures[row.task_id].failure if row.task_id in failures else None,
            shown=shown[row.id],
            best=validations.get(row.best_validation_id or 0),
            latest=validations.get(row.latest_validation_id or 0),
            best_checkpoint=_best(checkpoints.get(row.task_id, []), validations.get(row.best_validation_id or 0)),
        )
        for row in rows
    ]


async def states(session: ReadSession, rows: Sequence[TrialRow]) -> dict[int, str]:
    """Returns the state of each trial in the older API, by its id."""
    return {
        trial_id: wire_state(shown)
        for some in batched(rows, MAX_TRIALS_A_STATEMENT)
        for trial_id, shown in (await displayed(session, some)).items()
    }


async def displayed(session: ReadSession, rows: Sequence[TrialRow]) -> dict[int, str]:
    """Returns the displayed state of each trial by its id."""
    live = {a.task_id: a.state for a in await allocation_rows.live_of_tasks(session, [r.task_id for r in rows])}
    building = await environment_wait_repository.building_for(session, [r.task_id for r in rows])
    return {
        r.id: display_state(r.state, [live[r.task_id]] if r.task_id in live else [], is_building=r.task_id in building)
        for r in rows
    }


async def workloads(
    session: ReadSession, row: TrialRow, *, groups: Sequence[str], batches: bool
) -> list[schemas.WorkloadContainer]:
    """Returns reports and checkpoints by step. Within a step the order is validation, checkpoint, training: the
    official client prints one row for each step with the state of its first workload, and a training workload has none.

    ``groups``: reports of a group of one's own are no workloads unless its name is given.
    """
    containers: list[tuple[int, int, schemas.WorkloadContainer]] = []
    for metric in await metric_rows.shown(session, [row.id], groups or OF_WORKLOADS):
        shown = schemas.metrics_workload(metric, batches=batches)
        if metric.group == "validation":
            containers.append((metric.steps or 0, 0, schemas.WorkloadContainer(validation=shown)))
        else:
            containers.append((metric.steps or 0, 2, schemas.WorkloadContainer(training=shown)))
    for checkpoint in await checkpoint_rows.of_tasks(session, [row.task_id]):
        shown_checkpoint = schemas.checkpoint_workload(checkpoint)
        containers.append((checkpoint.steps_completed, 1, schemas.WorkloadContainer(checkpoint=shown_checkpoint)))
    containers.sort(key=lambda item: item[:2])
    return [container for _, _, container in containers]


def _best(checkpoints: Sequence[CheckpointRow], validation: MetricRow | None) -> CheckpointRow | None:
    if validation is None:
        return None
    return next((c for c in reversed(checkpoints) if c.steps_completed == validation.steps), None)
