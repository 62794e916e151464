"""Preview of a search: how many trials of a configuration train how long."""

import json
from typing import Any

from fastapi import APIRouter

from determined.config.search_plan import HALVING, planned_lengths, training_time
from determined_master.api.dependencies import CreatorDep, User
from determined_master.api.schemas.base import Json, Wire
from determined_master.errors import InvalidConfig

router = APIRouter(prefix="/api/v1")


class PreviewBody(Wire):
    """``seed`` changes the hyperparameters of the trials, and not how long they train."""

    config: Json = {}
    seed: int = 0


class PreviewUnit(Wire):
    """``max_length``: the trials train to the end, however long that is."""

    name: str | None
    value: int | None
    max_length: bool


class PreviewTrials(Wire):
    count: int
    unit: PreviewUnit


class PreviewSummary(Wire):
    """``config``: the search with its defaults."""

    config: Json
    trials: list[PreviewTrials]


class PreviewAnswer(Wire):
    summary: PreviewSummary


@router.post("/preview-hp-search")
async def preview_search(body: PreviewBody, _user: User, creator: CreatorDep) -> PreviewAnswer:
    result = await creator.check(json.dumps({"entrypoint": "preview", **body.config}))
    if result.config is None:
        raise InvalidConfig(result.checked)
    searcher: dict[str, Any] = result.config["searcher"]
    has_length = searcher["name"] in HALVING or searcher.get("max_length") is not None
    unit = training_time(searcher).unit if has_length else None
    trials = [
        PreviewTrials(count=number, unit=PreviewUnit(name=unit, value=length, max_length=length is None))
        for number, length in planned_lengths(result.config)
    ]
    return PreviewAnswer(summary=PreviewSummary(config=searcher, trials=trials))
