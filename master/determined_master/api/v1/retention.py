"""Preview of checkpoint retention: which checkpoints of an experiment a policy would delete."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.schemas.base import RowId, rfc3339
from determined_master.api.schemas.enums import checkpoint_state
from determined_master.checkpoints import repository, retention_repository
from determined_master.checkpoints.retention import Policy, superfluous
from determined_master.db.statements.batches import batched
from determined_master.experiments import repository as experiment_rows
from determined_master.metrics import repository as metric_rows

router = APIRouter(tags=["checkpoints"])
Count = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
_BATCH = 500


@router.get("/experiments/{experiment_id}/preview_gc")
async def preview(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    save_experiment_best: Count = None,
    save_trial_best: Count = None,
    save_trial_latest: Count = None,
) -> dict[str, Any]:
    """Returns the checkpoints that would be deleted. A number that is not given is the experiment's own."""
    experiment = await experiment_rows.get(session, experiment_id)
    given = {
        "save_experiment_best": save_experiment_best,
        "save_trial_best": save_trial_best,
        "save_trial_latest": save_trial_latest,
    }
    storage = experiment.config.get("checkpoint_storage", {})
    policy = Policy.of(storage | {name: value for name, value in given.items() if value is not None})
    found = await retention_repository.candidates(session, experiment_id)
    to_remove = set(superfluous(found, policy))
    chosen = [each for each in found if each.uuid in to_remove]
    shown: list[dict[str, Any]] = []
    for some in batched(chosen, _BATCH):
        reports = await metric_rows.validations_at(session, {(each.trial_id, each.steps) for each in some})
        for checkpoint in some:
            row = await repository.get(session, checkpoint.uuid)
            validation = reports.get((checkpoint.trial_id, checkpoint.steps))
            shown.append(
                {
                    "TrialID": checkpoint.trial_id,
                    "StepsCompleted": checkpoint.steps,
                    "State": checkpoint_state(row.state).removeprefix("STATE_"),
                    "UUID": checkpoint.uuid,
                    "Resources": row.resources,
                    "ReportTime": rfc3339(row.report_time),
                    "ValidationMetrics": validation.metrics if validation else None,
                }
            )
    return {"checkpoints": shown, "metric_name": experiment.searcher_metric}
