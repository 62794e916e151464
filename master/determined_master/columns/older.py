"""The older API's way to find experiments."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.columns import wire
from determined_master.dependencies import Read

router = APIRouter(prefix="/api/v1", tags=["finding"])


@router.post("/experiments-search")
async def search_experiments(
    body: wire.ExperimentsSearchBody, _principal: Anyone, session: Read
) -> wire.ExperimentsSearchAnswer:
    raise NotImplementedYet("not yet")


@router.get("/projects/{project_id}/columns")
async def get_project_columns(project_id: int, _principal: Anyone, session: Read) -> wire.ProjectColumnsAnswer:
    raise NotImplementedYet("not yet")


@router.get("/projects/{project_id}/experiments/metric-ranges")
async def get_project_metric_ranges(project_id: int, _principal: Anyone, session: Read) -> wire.MetricRangesAnswer:
    raise NotImplementedYet("not yet")


@router.get("/experiment/labels")
async def get_experiment_labels(
    _principal: Anyone, session: Read, project_id: Annotated[int, Query(alias="projectId")] = 0
) -> wire.ExperimentLabelsAnswer:
    raise NotImplementedYet("not yet")
