"""Status and timeline of an experiment and its trials."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response

from determined.config.search_plan import IN_TASK
from determined.states import ExperimentState
from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import Anyone, AuthorizationDep, ClockDep, Read
from determined_master.api.queries import experiment_status as status_queries
from determined_master.api.queries.environment_builds import builds_of
from determined_master.api.queries.timeline_marks import moments_of, on_timeline
from determined_master.api.queries.timeline_segments import segments_of
from determined_master.api.schemas import experiment_status as schemas
from determined_master.api.schemas.base import Moment, RowId, answered, utc
from determined_master.checkpoints import retention_repository
from determined_master.db.models import ExperimentRow
from determined_master.db.session import ReadSession
from determined_master.events import repository as event_rows
from determined_master.experiment_index import repository as listed_experiments
from determined_master.experiments import repository
from determined_master.experiments.actions import Action
from determined_master.logs import log_queries
from determined_master.metrics.health import health_of
from determined_master.searcher.task_method import FAILURE
from determined_master.tasks import search_task_repository
from determined_master.trials import repository as trial_rows
from determined_master.trials.timeline_queries import histories_of
from determined_master.users import repository as user_rows

router = APIRouter(prefix="/detent", tags=["detent"])

Verbs = tuple[schemas.AllowedVerbs, schemas.RefusedVerbs]
MAX_LISTED_TRIALS, MAX_DRAWN_TRIALS = 500, 200


@router.get("/experiments/{experiment_id}/status", response_model=schemas.ExperimentStatus)
async def get_experiment_status(
    experiment_id: RowId, principal: Anyone, session: Read, authorization: AuthorizationDep, clock: ClockDep
) -> Response:
    """Returns the live trials and the newest of the others if the experiment has many."""
    row = await repository.get(session, experiment_id)
    owner = (await user_rows.get(session, row.user_id)).username
    permitted = f"only {owner} (the owner) or an admin may"
    foreign = "" if authorization.may_change(principal, row.user_id) else f"{permitted} change it"
    undeletable = "" if authorization.may_delete(principal, row.user_id) else f"{permitted} delete it"
    verbs = status_queries.verbs_of(row, foreign, undeletable)
    return answered(await status_of(session, row, clock.now(), verbs))


@router.post("/experiments/allowed-actions")
async def list_allowed_actions(
    body: schemas.AllowedActionsBody, principal: Anyone, session: Read, authorization: AuthorizationDep
) -> schemas.AllowedActionsAnswer:
    """Returns the experiments that exist, grouped by what the caller can do to them now."""
    groups: dict[tuple[Action, ...], list[int]] = {}
    for facts in await listed_experiments.action_facts(session, body.experiment_ids):
        actions = status_queries.allowed_actions(
            facts.state,
            archived=facts.archived,
            may_change=authorization.may_change(principal, facts.owner_id),
            may_delete=authorization.may_delete(principal, facts.owner_id),
        )
        groups.setdefault(actions, []).append(facts.id)
    return schemas.AllowedActionsAnswer(
        groups=[schemas.ActionGroup(actions=list(actions), ids=ids) for actions, ids in groups.items()]
    )


@router.get("/experiments/{experiment_id}/timeline", response_model=schemas.Timeline)
async def get_experiment_timeline(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    clock: ClockDep,
    start: Annotated[Moment | None, Query(alias="from")] = None,
    end: Annotated[Moment | None, Query(alias="to")] = None,
) -> Response:
    """Returns what overlaps the period; of a large search only the live and the newest trials."""
    await repository.get(session, experiment_id)
    now = clock.now()
    first, last = utc(start), utc(end)
    rows = await trial_rows.most_telling(session, experiment_id, MAX_DRAWN_TRIALS)
    timeline = schemas.Timeline(now=now, segments=[], marks=[])
    for history in await histories_of(session, rows):
        timeline.segments += [
            s
            for s in segments_of(history, now)
            if (last is None or s.from_ <= last) and (first is None or s.to is None or s.to >= first)
        ]
        timeline.marks += [
            m
            for m in on_timeline(history.trial_id, moments_of(history))
            if (last is None or m.time <= last) and (first is None or m.time >= first)
        ]
    return answered(timeline)


async def status_of(session: ReadSession, row: ExperimentRow, now: datetime, verbs: Verbs) -> schemas.ExperimentStatus:
    trials = await trial_rows.most_telling(session, row.id, MAX_LISTED_TRIALS)
    total = (await trial_rows.counts(session, [row.id])).get(row.id, 0)
    going = [trial.task_id for trial in trials if trial.state.is_live]
    live = {each.task_id: each for each in await allocation_rows.live_of_tasks(session, going)}
    moved = {
        each.target_id: each.time for each in await event_rows.moves_of(session, "trial", [str(t.id) for t in trials])
    }
    last = await event_rows.last_move(session, "experiment", row.id)
    message = str(last.payload.get("message", "")) if last else ""
    if row.state is ExperimentState.DELETING:
        message = await _awaited_removal(session, row.id)
    failed = await allocation_rows.newest_failures(session, [trial.task_id for trial in trials])
    builds = await builds_of(session, going, row.config) if row.state is ExperimentState.ACTIVE else {}
    restarts = row.config.get("max_restarts", 0)
    silent = health_of(row.config).silent_after
    statuses = [
        status_queries.trial_status(
            t,
            live.get(t.task_id),
            moved.get(str(t.id)),
            now,
            failed.get(t.task_id),
            max_restarts=restarts,
            silent_after=silent,
            build=builds.get(t.task_id),
        )
        for t in trials
    ]
    state = status_queries.finer(row.state, list(live.values()), is_building=bool(builds))
    # The searcher counts a trial's progress only when it processes a report; a single trial is the whole search.
    progress = trials[0].progress if total == 1 and row.state.is_live else row.progress
    attempts = (await trial_rows.attempt_times(session, [row.id])).get(row.id, [])
    spans = status_queries.running_spans(attempts) if state == "STATE_RUNNING" else []
    times = status_queries.run_times(attempts, now)
    text = status_queries.text_of(row, statuses, list(live.values()), total, message)
    if row.state is ExperimentState.ACTIVE and row.searcher_type in IN_TASK:
        text = await _with_search(session, row, text, total)
    can, why = verbs
    return schemas.ExperimentStatus(
        id=row.id,
        state=state,
        text=text,
        since=status_queries.since_of(row, last.time if last else None, statuses, state),
        progress=progress,
        eta_seconds=status_queries.eta_seconds(progress, spans, now),
        now=now,
        submitted_at=row.start_time,
        waited_seconds=times.waited_seconds,
        ran_seconds=times.ran_seconds,
        failure=await _with_line(session, statuses, {t.id: t.task_id for t in trials}),
        can=can,
        why=why,
        trials=statuses,
        archived=row.archived,
    )


async def _with_search(session: ReadSession, row: ExperimentRow, text: str, total: int) -> str:
    """Returns the text of an active experiment with the state of the task that runs its search."""
    task = await search_task_repository.find_active(session, row.id)
    failure = row.searcher_snapshot.get(FAILURE)
    if failure:
        return f"{text}; {failure}; its task starts again"
    if total or task is None:
        return text
    waiting = next((each.waiting for each in await allocation_rows.live_of_tasks(session, [task.task_id])), "")
    return f"{text}: the search begins in task {task.task_id}{f', which waits: {waiting}' if waiting else ''}"


async def _awaited_removal(session: ReadSession, experiment_id: int) -> str:
    """Returns which task has to remove files before the experiment is deleted; empty if none."""
    checkpoints, tasks = await retention_repository.removal_progress(session, experiment_id)
    live = {each.task_id: each.waiting for each in await allocation_rows.live_of_tasks(session, tasks)}
    return status_queries.awaited_removal(checkpoints, {task: live.get(task, "") for task in tasks})


async def _with_line(
    session: ReadSession, statuses: Sequence[schemas.TrialStatus], task_ids: Mapping[int, str]
) -> schemas.AttemptFailure | None:
    """Returns the failure of the first trial that failed for good, with its place in the log."""
    failure = next((each.failure for each in statuses if each.state == "STATE_ERROR" and each.failure), None)
    if failure is None:
        return None
    line = await log_queries.first_error(session, task_ids[failure.trial_id], failure.allocation_id)
    return failure.model_copy(update={"log_line": None if line is None else line.id})
