"""What an experiment is doing now, and what it and its trials did when."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.dependencies import Read, TheMaster
from determined_master.experiments import shown

router = APIRouter(prefix="/detent", tags=["detent"])


@router.get("/experiments/{experiment_id}/status")
async def get_experiment_status(
    experiment_id: int, _principal: Anyone, session: Read, master: TheMaster
) -> shown.ExperimentStatus:
    raise NotImplementedYet


@router.get("/experiments/{experiment_id}/timeline")
async def get_experiment_timeline(
    experiment_id: int,
    _principal: Anyone,
    session: Read,
    master: TheMaster,
    start: Annotated[datetime | None, Query(alias="from")] = None,
    end: Annotated[datetime | None, Query(alias="to")] = None,
) -> shown.Timeline:
    raise NotImplementedYet
