"""Curves and figures for the page's plots and tables."""

from fastapi import APIRouter

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.metrics.wire import NamedMetrics, SeriesAnswer, SeriesBody, SummariesAnswer, SummariesBody

router = APIRouter(prefix="/detent", tags=["series"])


@router.post("/series")
async def series(body: SeriesBody, _principal: Anyone) -> SeriesAnswer:
    raise NotImplementedYet("series come with the next commit")


@router.get("/experiments/{experiment_id}/metric-names")
async def experiment_metric_names(experiment_id: int, _principal: Anyone) -> NamedMetrics:
    raise NotImplementedYet("metric names come with the next commit")


@router.get("/trials/{trial_id}/metric-names")
async def trial_metric_names(trial_id: int, _principal: Anyone) -> NamedMetrics:
    raise NotImplementedYet("metric names come with the next commit")


@router.post("/trials/summaries")
async def trial_summaries(body: SummariesBody, _principal: Anyone) -> SummariesAnswer:
    raise NotImplementedYet("summaries come with the next commit")
