"""Brackets of a search, and each decision on its trials with its reason."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query

from determined.config.search_plan import HALVING, training_time
from determined_master.api.dependencies import Anyone, Read
from determined_master.api.schemas.base import Number, RowId, Time, Wire
from determined_master.db.models import EventRow, ExperimentRow
from determined_master.experiments import repository
from determined_master.trials import repository as trial_rows
from determined_master.trials.decision_queries import decisions_of

router = APIRouter(prefix="/detent", tags=["detent"])
MAX_DECISIONS = 20_000


class SearchBracket(Wire):
    """``units``: training time of each rung; ``results``: how many trials have reached it."""

    number: int
    units: list[int]
    results: list[int]
    trials: int


class SearchDecision(Wire):
    """``kind``: ``created``, ``kept`` or ``stopped``. The numbers are those of the rung, if it was decided at one.

    Brackets, rungs and ranks count from 1.
    """

    time: Time
    trial_id: int
    kind: str
    reason: str
    bracket: int | None
    rung: int | None
    rank: int | None
    count: int | None
    kept: int | None
    trained: Number | None
    """Training time of the trial, in ``unit``."""
    metric: Number | None


class Decisions(Wire):
    decisions: list[SearchDecision]


class Search(Wire):
    """``unit`` and ``brackets`` are empty for a search without rungs."""

    searcher: str
    metric: str
    smaller_is_better: bool
    unit: str
    brackets: list[SearchBracket]
    decisions: list[SearchDecision]


@router.get("/experiments/{experiment_id}/search")
async def get_search(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    limit: Annotated[int, Query(ge=1, le=MAX_DECISIONS)] = MAX_DECISIONS,
) -> Search:
    """Returns the brackets and the newest decisions, oldest first."""
    row = await repository.get(session, experiment_id)
    rows = await decisions_of(session, experiment_id, most=limit)
    return _search(row, [_decision(each, smaller=row.smaller_is_better) for each in rows])


@router.get("/trials/{trial_id}/decisions")
async def get_trial_decisions(trial_id: RowId, _principal: Anyone, session: Read) -> Decisions:
    trial = await trial_rows.get(session, trial_id)
    experiment = await repository.get(session, trial.experiment_id)
    rows = await decisions_of(session, trial.experiment_id, trial_id=trial_id)
    return Decisions(decisions=[_decision(each, smaller=experiment.smaller_is_better) for each in rows])


def _search(row: ExperimentRow, decisions: list[SearchDecision]) -> Search:
    searcher = row.config["searcher"]
    brackets = row.searcher_snapshot.get("brackets", []) if searcher["name"] in HALVING else []
    # Not from the snapshot, which may be some events old.
    reached = Counter((each.bracket, each.rung) for each in decisions if each.rung is not None)
    return Search(
        searcher=searcher["name"],
        metric=row.searcher_metric,
        smaller_is_better=row.smaller_is_better,
        unit=training_time(searcher).unit if brackets else "",
        brackets=[
            SearchBracket(
                number=number,
                units=each["units"],
                results=[reached[number, rung] for rung in range(1, len(each["units"]) + 1)],
                trials=each["max_trials"],
            )
            for number, each in enumerate(brackets, 1)
        ],
        decisions=decisions,
    )


def _decision(row: EventRow, *, smaller: bool) -> SearchDecision:
    payload = row.payload
    metric = payload.get("metric")
    return SearchDecision(
        time=row.time,
        trial_id=int(row.target_id),
        kind=row.kind,
        reason=payload.get("reason", ""),
        bracket=payload.get("bracket"),
        rung=payload.get("rung"),
        rank=payload.get("rank"),
        count=payload.get("count"),
        kept=payload.get("kept"),
        trained=payload.get("time"),
        metric=metric if metric is None or smaller else -metric,
    )
