"""Routes of the task that runs a search method: events out, actions and snapshot in."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from determined_master import notifications
from determined_master.api.dependencies import NotificationsDep, SearchTask, TaskSearchDep
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import BoundedInt, Empty, Json, RowId, Wire
from determined_master.experiments.task_search import TaskStep
from determined_master.searcher.actions import Action, Create, Shutdown, Stop

router = APIRouter(route_class=JsonRoute, prefix="/detent/experiments/{experiment_id}/search-task", tags=["detent"])
MAX_POLL_SECONDS = 90
MAX_ACTIONS = 10_000
Reason = Annotated[str, Field(max_length=1000)]
RequestId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,36}$")]


class SearchStart(Wire):
    """``cursor`` is -1 and ``snapshot`` null before the first step."""

    searcher: dict[str, Any]
    hyperparameters: dict[str, Any]
    seed: int
    cursor: int
    snapshot: dict[str, Any] | None
    is_over: bool


class SearchNews(Wire):
    to: int
    events: list[dict[str, Any]]
    is_over: bool


class CreateBody(Wire):
    kind: Literal["create"]
    request_id: RequestId
    hparams: Json
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    reason: Reason = ""


class StopBody(Wire):
    kind: Literal["stop"]
    request_id: RequestId
    reason: Reason = ""


class ShutdownBody(Wire):
    kind: Literal["shutdown"]
    failed: bool = False
    canceled: bool = False
    reason: Reason = ""


ActionBody = Annotated[CreateBody | StopBody | ShutdownBody, Field(discriminator="kind")]


class StepBody(Wire):
    """``progress``: null if the method does not know it."""

    cursor: BoundedInt
    to: BoundedInt
    actions: Annotated[list[ActionBody], Field(max_length=MAX_ACTIONS)]
    snapshot: Json
    progress: Annotated[float, Field(ge=0, le=1)] | None = None


class StepAnswer(Wire):
    is_over: bool


class FailureBody(Wire):
    """``is_final``: another task would fail in the same way."""

    reason: Annotated[str, Field(max_length=4000)]
    is_final: bool = False


@router.get("")
async def start(experiment_id: RowId, principal: SearchTask, search: TaskSearchDep) -> SearchStart:
    started = await search.start(experiment_id, principal)
    return SearchStart(
        searcher=started.config["searcher"],
        hyperparameters=started.config["hyperparameters"],
        seed=started.config["reproducibility"]["experiment_seed"],
        cursor=started.cursor,
        snapshot=started.snapshot,
        is_over=started.is_over,
    )


@router.get("/events")
async def events(
    experiment_id: RowId,
    principal: SearchTask,
    search: TaskSearchDep,
    publisher: NotificationsDep,
    cursor: BoundedInt,
    timeout_seconds: Annotated[int, Query(alias="timeoutSeconds")] = 0,
) -> SearchNews:
    """Long poll: returns when there are events after ``cursor``, or the search is over."""
    deadline = time.monotonic() + max(0, min(timeout_seconds, MAX_POLL_SECONDS))
    async with publisher.subscribe(notifications.SEARCH) as listener:
        while True:
            news = await search.news(experiment_id, principal, cursor)
            left = deadline - time.monotonic()
            if news.to != cursor or news.is_over or left <= 0 or publisher.closing:
                return SearchNews(to=news.to, events=news.events, is_over=news.is_over)
            await listener.wait(left)


@router.post("/steps")
async def step(experiment_id: RowId, body: StepBody, principal: SearchTask, search: TaskSearchDep) -> StepAnswer:
    """Stores actions and snapshot after some events; may be repeated."""
    actions = [_action(each) for each in body.actions]
    taken = TaskStep(body.cursor, body.to, actions, body.snapshot, body.progress)
    return StepAnswer(is_over=await search.store(experiment_id, principal, taken))


@router.post("/failures")
async def fail(experiment_id: RowId, body: FailureBody, principal: SearchTask, search: TaskSearchDep) -> Empty:
    """Keeps why the method failed; may be repeated."""
    await search.fail(experiment_id, principal, body.reason, is_final=body.is_final)
    return Empty()


def _action(body: CreateBody | StopBody | ShutdownBody) -> Action:
    if isinstance(body, CreateBody):
        return Create(body.request_id, body.hparams, body.seed, body.reason)
    if isinstance(body, StopBody):
        return Stop(body.request_id, body.reason)
    return Shutdown(failed=body.failed, canceled=body.canceled, reason=body.reason)
