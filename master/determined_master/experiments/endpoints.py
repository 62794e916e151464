"""Experiments: list, get, pause and the other verbs, labels, model definition."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotFound
from determined.states import ExperimentState
from determined_master.auth import Anyone, User
from determined_master.dependencies import Read, TheMaster
from determined_master.experiments import edit, listing, reading, repository, wire
from determined_master.experiments.model_def import as_tgz
from determined_master.trials import repository as trial_rows
from determined_master.wire.enums import states
from determined_master.wire.model import Empty

router = APIRouter(prefix="/api/v1", tags=["experiments"])


@router.get("/experiments")
async def list_experiments(
    _principal: Anyone, session: Read, filters: Annotated[listing.Filters, Query()]
) -> wire.ExperimentsAnswer:
    rows, pagination = await listing.find(session, filters, states(filters.states, ExperimentState))
    return wire.ExperimentsAnswer(experiments=await reading.show(session, rows), pagination=pagination)


@router.get("/experiments/{experiment_id}")
async def get_experiment(experiment_id: int, _principal: Anyone, session: Read) -> wire.ExperimentAnswer:
    row = await repository.get(session, experiment_id)
    shown = (await reading.show(session, [row]))[0]
    queued = shown.state == "STATE_QUEUED"
    job = wire.JobSummary(state="STATE_QUEUED" if queued else "STATE_SCHEDULED")
    return wire.ExperimentAnswer(experiment=shown, config=shown.config, job_summary=job if row.state.is_live else None)


@router.post("/experiments/{experiment_id}/activate")
async def activate(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.activate(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/pause")
async def pause(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.pause(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/cancel")
async def cancel(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.cancel(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/kill")
async def kill(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.kill(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/archive")
async def archive(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.archive(experiment_id, user, archived=True)
    return Empty()


@router.post("/experiments/{experiment_id}/unarchive")
async def unarchive(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.archive(experiment_id, user, archived=False)
    return Empty()


@router.delete("/experiments/{experiment_id}")
async def delete(experiment_id: int, user: User, master: TheMaster) -> Empty:
    await master.verbs.delete(experiment_id, user)
    return Empty()


@router.patch("/experiments/{experiment_id}")
async def patch(experiment_id: int, body: wire.PatchBody, user: User, master: TheMaster) -> wire.ExperimentAnswer:
    await edit.patch(master.database, master.clock, experiment_id, body, user)
    async with master.database.read() as session:
        row = await repository.get(session, experiment_id)
        return wire.ExperimentAnswer(experiment=(await reading.show(session, [row]))[0])


@router.put("/experiments/{experiment_id}/labels/{label}")
async def add_label(experiment_id: int, label: str, user: User, master: TheMaster) -> wire.LabelsAnswer:
    labels = await edit.relabel(master.database, master.clock, experiment_id, user, add=[label])
    return wire.LabelsAnswer(labels=labels)


@router.delete("/experiments/{experiment_id}/labels/{label}")
async def remove_label(experiment_id: int, label: str, user: User, master: TheMaster) -> wire.LabelsAnswer:
    labels = await edit.relabel(master.database, master.clock, experiment_id, user, remove=[label])
    return wire.LabelsAnswer(labels=labels)


@router.get("/experiments/{experiment_id}/model_def")
async def model_def(experiment_id: int, _principal: Anyone, session: Read, master: TheMaster) -> wire.ModelDefAnswer:
    row = await repository.get(session, experiment_id)
    return wire.ModelDefAnswer(b64_tgz=await as_tgz(master.blobs, row.context_hash))


@router.get("/experiments/{experiment_id}/searcher/best_searcher_validation_metric")
async def best_metric(experiment_id: int, _principal: Anyone, session: Read) -> wire.BestMetricAnswer:
    row = await repository.get(session, experiment_id)
    best = wire.best_trial(row, await trial_rows.of_experiment(session, experiment_id))
    if best is None:
        raise NotFound(f"experiment {experiment_id} has no validation yet")
    return wire.BestMetricAnswer(metric=best.searcher_metric_value)
