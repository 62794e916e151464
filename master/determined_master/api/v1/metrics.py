"""Reports of metrics as streams."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from determined_master.api.dependencies import Anyone, DatabaseDep, Read
from determined_master.api.json_lines import json_lines
from determined_master.api.schemas.base import RowId
from determined_master.api.schemas.metrics import metrics_report
from determined_master.db.session import Database
from determined_master.metrics import repository
from determined_master.trials import repository as trial_rows

router = APIRouter(prefix="/api/v1", tags=["metrics"])
PAGE = 1000
TrialIds = Annotated[list[RowId], Query(alias="trialIds")]


@router.get("/trials/metrics/training_metrics")
async def training(_principal: Anyone, session: Read, database: DatabaseDep, trial_ids: TrialIds) -> StreamingResponse:
    await _known(session, trial_ids)
    return json_lines(_reports(database, trial_ids, ["training"]))


@router.get("/trials/metrics/validation_metrics")
async def validation(
    _principal: Anyone, session: Read, database: DatabaseDep, trial_ids: TrialIds
) -> StreamingResponse:
    await _known(session, trial_ids)
    return json_lines(_reports(database, trial_ids, ["validation"]))


@router.get("/trials/metrics/trial_metrics")
async def any_group(
    _principal: Anyone, session: Read, database: DatabaseDep, trial_ids: TrialIds, group: str = ""
) -> StreamingResponse:
    await _known(session, trial_ids)
    return json_lines(_reports(database, trial_ids, [group] if group else []))


async def _known(session: Read, trial_ids: list[int]) -> None:
    for trial_id in trial_ids:
        await trial_rows.get(session, trial_id)


async def _reports(database: Database, trial_ids: list[int], groups: list[str]) -> AsyncIterator[dict[str, Any]]:
    """Yields reports in pages, each from a session of its own: no session lives as long as the stream."""
    for trial_id in trial_ids:
        after = 0
        while True:
            async with database.read() as session:
                rows = await repository.shown(session, [trial_id], groups, after=after, most=PAGE)
            if not rows:
                break
            after = rows[-1].id
            yield {"metrics": [metrics_report(row).model_dump(mode="json") for row in rows]}
