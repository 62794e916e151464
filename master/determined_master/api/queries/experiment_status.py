"""Status of an experiment: displayed state, a sentence, allowed actions, remaining time. Pure."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import get_args

from determined.states import AllocationState, ExitReason, ExperimentState, TrialState, state_phrase
from determined_master.api.queries.environment_builds import BuildStatus
from determined_master.api.schemas.experiment_status import (
    AllowedVerbs,
    AttemptFailure,
    FinerState,
    RefusedVerbs,
    RunTimes,
    TrialStatus,
)
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.experiments.actions import Action, refusal
from determined_master.metrics import health
from determined_master.states.display_state import display_state
from determined_master.trials.repository import AttemptTimes

Span = tuple[datetime, datetime | None]
MIN_PROGRESS = 0.005
"""Below this progress no remaining time is estimated."""
BUILDING: FinerState = "STATE_BUILDING_ENVIRONMENT"
_WAITING: Collection[FinerState] = ("STATE_QUEUED", BUILDING)
_WORDS: Mapping[str, FinerState] = {word: word for word in get_args(FinerState)}


def finer(
    state: ExperimentState | TrialState, live: Collection[AllocationRow], *, is_building: bool = False
) -> FinerState:
    """Returns the displayed state with the wire's prefix. ``is_building``: a trial waits for its environment."""
    return _WORDS[f"STATE_{display_state(state, [each.state for each in live], is_building=is_building)}"]


def leaving(live: Collection[AllocationRow]) -> str:
    """Returns what has to end before the slots are free."""
    asked = [each for each in live if each.kill_requested_at is None and each.ready_at is not None]
    if any(each.preempt_acked_at is None for each in asked):
        return "waiting for checkpoint"
    return "saved, exiting" if asked else "waiting for its processes to end"


def text_of(
    row: ExperimentRow, trials: Sequence[TrialStatus], live: Sequence[AllocationRow], total: int, message: str = ""
) -> str:
    """``total``: number of trials, of which the most relevant are given. ``message``: the reason from the event of the
    last change of state; of a deletion, what it waits for."""
    shown = finer(row.state, live, is_building=any(trial.build_task_id for trial in trials))
    if shown == "STATE_PAUSING":
        return f"pausing: {leaving(live)}"
    if row.state.is_stopping:
        word = state_phrase(row.state)
        return f"{word}: {leaving(live)}" if live else word
    if row.state is ExperimentState.ERROR and message:
        return f"failed: {message}"
    if row.state is ExperimentState.ERROR:
        failed = [trial for trial in trials if trial.state == "STATE_ERROR"]
        return _with_reason("failed", f"trial {failed[0].trial_id}", failed[0].text) if failed else "failed"
    if row.state is ExperimentState.DELETE_FAILED and message:
        return f"delete failed: {message}"
    if row.state is ExperimentState.DELETING and message:
        return f"deleting: {message}"
    if shown in _WAITING:
        waiting = next((trial.waiting for trial in trials if trial.waiting and trial.state == shown), None)
        return f"{_word(shown)}: {waiting}" if waiting else _word(shown)
    if shown == "STATE_RUNNING":
        running = sum(trial.state == "STATE_RUNNING" for trial in trials)
        noted = next((trial for trial in trials if trial.state == "STATE_RUNNING" and trial.note), None)
        if total == 1:
            return f"running: {noted.note}" if noted else "running"
        text = f"running: {running} of {total} trials"
        return f"{text}; trial {noted.trial_id}: {noted.note}" if noted else text
    return _word(shown)


def _word(shown: FinerState) -> str:
    return shown.removeprefix("STATE_").lower().replace("_", " ")


def _with_reason(word: str, what: str, text: str) -> str:
    """Joins them without saying ``word`` twice: the trial's own text may begin with it."""
    rest = text.removeprefix(word).removeprefix(": ")
    return f"{word}: {what}: {rest}" if rest else f"{word}: {what}"


def trial_status(
    row: TrialRow,
    live: AllocationRow | None,
    moved: datetime | None,
    now: datetime,
    failed: AllocationRow | None = None,
    max_restarts: int = 0,
    silent_after: float = 0.0,
    build: BuildStatus | None = None,
) -> TrialStatus:
    """``failed``: the newest failed attempt. ``silent_after``: seconds without a report before a note says so.
    ``build``: the build of its environment for which it waits."""
    allocations = [] if live is None else [live]
    shown = finer(row.state, allocations, is_building=build is not None)
    waiting = build.text if build and shown == BUILDING else waiting_of(row, live, now)
    failure = None
    if (
        failed is not None
        and failed.failure is not None
        and row.state not in (TrialState.COMPLETED, TrialState.CANCELED)
    ):
        failure = AttemptFailure(
            trial_id=row.id,
            run_id=failed.run_id,
            allocation_id=failed.id,
            text=failed.failure,
            time=failed.ended_at or failed.created_at,
            log_line=None,
        )
    return TrialStatus(
        trial_id=row.id,
        state=shown,
        text=_trial_text(row, live, shown, waiting, failure.text if failure else ""),
        note=note_of(row, live, silent_after, now),
        failure=failure,
        attempt=row.restarts + 1,
        max_attempts=max(max_restarts, row.restarts) + 1,
        since=_trial_since(row, live, moved),
        waiting=waiting,
        restarts=row.restarts,
        progress=row.progress,
        steps=row.steps_completed,
        build_task_id=build.task_id if build and shown == BUILDING else None,
    )


def note_of(row: TrialRow, live: AllocationRow | None, silent_after: float, now: datetime) -> str | None:
    """Returns what is wrong with a trial that is alive, or was with one that has ended; None if nothing is known."""
    silent = ""
    if live is not None and live.state is AllocationState.RUNNING and row.state is TrialState.ACTIVE:
        silent = health.silence(row.last_report_at, live.ready_at, silent_after, now)
    return "; ".join(filter(None, (f"it {silent}" if silent else "", row.health_warning))) or None


def waiting_of(row: TrialRow, live: AllocationRow | None, now: datetime) -> str | None:
    if live is not None:
        return live.waiting or None
    if row.state is TrialState.ACTIVE and row.retry_at is not None and row.retry_at > now:
        seconds = (row.retry_at - now).total_seconds()
        return f"backing off after {row.system_failures} system failures in a row; again in {seconds:.0f} s"
    return None


def _trial_text(row: TrialRow, live: AllocationRow | None, shown: FinerState, waiting: str | None, failure: str) -> str:
    if live is not None and (shown == "STATE_PAUSING" or row.state.is_stopping):
        word = "pausing" if shown == "STATE_PAUSING" else state_phrase(row.state)
        return f"{word}: {leaving([live])}"
    if row.state.is_terminal and row.exit_reason not in (None, ExitReason.COMPLETED):
        return _end_text(row, row.exit_reason or ExitReason.ERRORED, failure)
    if shown in _WAITING and waiting:
        return f"{_word(shown)}: {waiting}"
    if live is not None and (live.preempt_requested_at or live.kill_requested_at):
        return f"{live.message or 'asked to release its slots'}: {leaving([live])}"
    return _word(shown)


def _end_text(row: TrialRow, reason: ExitReason, failure: str) -> str:
    if reason is ExitReason.OUT_OF_RESTARTS and row.restarts:
        words = f"{reason.phrase} after {row.restarts + 1} attempts"
    else:
        words = "failed" if reason is ExitReason.OUT_OF_RESTARTS else reason.phrase
    return f"{words}: {failure}" if failure and row.state is TrialState.ERROR else words


def _trial_since(row: TrialRow, live: AllocationRow | None, moved: datetime | None) -> datetime:
    if row.end_time is not None:
        return row.end_time
    if live is None or row.state is not TrialState.ACTIVE:
        return moved or row.start_time
    if live.state in (AllocationState.RUNNING, AllocationState.TERMINATING):
        return live.ready_at or live.placed_at or live.created_at
    return live.placed_at or live.created_at


def awaited_removal(checkpoints: int, tasks: Mapping[str, str]) -> str:
    """Returns what the deletion of an experiment waits for. ``tasks``: reason for waiting of each task that removes
    files; empty if it does not wait.

    >>> awaited_removal(2, {"a1": "pool 'default' has no agent yet"})
    "a task removes the files of 2 checkpoints first; it waits: pool 'default' has no agent yet (det task logs a1)"
    """
    if not checkpoints:
        return ""
    text = f"a task removes the files of {checkpoints} checkpoint{'' if checkpoints == 1 else 's'} first"
    if not tasks:
        return text
    waiting = next((task for task, why in tasks.items() if why), None)
    if waiting is not None:
        return f"{text}; it waits: {tasks[waiting]} (det task logs {waiting})"
    return f"{text} (det task logs {next(iter(tasks))})"


def since_of(row: ExperimentRow, moved: datetime | None, trials: Sequence[TrialStatus], shown: FinerState) -> datetime:
    if row.end_time is not None and row.state.is_terminal:
        return row.end_time
    entered = moved or row.start_time
    if row.state is not ExperimentState.ACTIVE:
        return entered
    return max(entered, min((trial.since for trial in trials if trial.state == shown), default=entered))


def eta_seconds(progress: float, spans: Sequence[Span], now: datetime) -> float | None:
    """Estimates the remaining time from the pace while anything ran, without pauses and queues."""
    if not MIN_PROGRESS <= progress < 1.0:
        return None
    ran = running_seconds(spans, now)
    return ran * (1.0 - progress) / progress if ran > 0 else None


def running_seconds(spans: Sequence[Span], now: datetime) -> float:
    """Returns the seconds in which at least one attempt ran: concurrent attempts count once."""
    total, reached = 0.0, None
    for start, end in sorted((start, end or now) for start, end in spans):
        first = start if reached is None or start > reached else reached
        if end > first:
            total += (end - first).total_seconds()
        reached = end if reached is None else max(reached, end)
    return total


def running_spans(attempts: Sequence[AttemptTimes]) -> list[Span]:
    return [(each.ready, each.ended) for each in attempts if each.ready is not None]


def run_times(attempts: Sequence[AttemptTimes], now: datetime) -> RunTimes:
    """Returns how long anything ran, and how long attempts waited for slots or started while nothing ran.

    A pause is neither.
    """
    spans = running_spans(attempts)
    ran = running_seconds(spans, now)
    waits: list[Span] = [(each.created, each.ready or each.ended) for each in attempts]
    return RunTimes(waited_seconds=running_seconds([*spans, *waits], now) - ran, ran_seconds=ran, now=now)


def allowed_actions(
    state: ExperimentState, *, archived: bool, may_change: bool, may_delete: bool
) -> tuple[Action, ...]:
    """Returns what this user can do to an experiment now, by the same table as the lifecycle commands."""
    permitted = dict.fromkeys(get_args(Action), may_change) | {"delete": may_delete, "fork": True}
    return tuple(
        action for action in get_args(Action) if permitted[action] and refusal(action, state, archived=archived) is None
    )


def verbs_of(row: ExperimentRow, foreign: str = "", undeletable: str = "") -> tuple[AllowedVerbs, RefusedVerbs]:
    """Returns the answers of the lifecycle commands. ``foreign`` says why this user may not change the experiment,
    ``undeletable`` why they may not delete it; empty if they may."""
    forbidden = dict.fromkeys(get_args(Action), foreign) | {"delete": undeletable, "fork": ""}
    reasons = {
        action: forbidden[action] or (f"it {refused.text}" if refused else None)
        for action in get_args(Action)
        for refused in [refusal(action, row.state, archived=row.archived)]
    }
    return AllowedVerbs(**{action: why is None for action, why in reasons.items()}), RefusedVerbs(**reasons)
