"""Wire models of an experiment's status, timeline and configuration."""

from typing import Annotated, Literal

from pydantic import Field

from determined_master.api.queries.timeline_marks import TimelineMark
from determined_master.api.queries.timeline_segments import TimelineSegment
from determined_master.api.schemas.base import BoundedInt, Time, Wire
from determined_master.experiment_index.bulk_selection import MAX_EXPERIMENTS
from determined_master.experiments.actions import Action

FinerState = Literal[
    "STATE_QUEUED",
    "STATE_BUILDING_ENVIRONMENT",
    "STATE_PULLING",
    "STATE_STARTING",
    "STATE_RUNNING",
    "STATE_PAUSING",
    "STATE_PAUSED",
    "STATE_STOPPING_COMPLETED",
    "STATE_STOPPING_CANCELED",
    "STATE_STOPPING_KILLED",
    "STATE_STOPPING_ERROR",
    "STATE_COMPLETED",
    "STATE_CANCELED",
    "STATE_ERROR",
    "STATE_DELETING",
    "STATE_DELETE_FAILED",
]
"""Never ACTIVE: an active trial is queued, without its environment, pulling, starting or running. Trials are never
deleted."""


class AllowedVerbs(Wire):
    pause: bool
    activate: bool
    cancel: bool
    kill: bool
    archive: bool
    unarchive: bool
    delete: bool
    fork: bool
    continue_: bool = Field(alias="continue")


class RefusedVerbs(Wire):
    """Reason why the action is not allowed now; None if it is allowed."""

    pause: str | None = None
    activate: str | None = None
    cancel: str | None = None
    kill: str | None = None
    archive: str | None = None
    unarchive: str | None = None
    delete: str | None = None
    fork: str | None = None
    continue_: str | None = Field(default=None, alias="continue")


class ActionGroup(Wire):
    """Experiments to which the caller can do the same."""

    actions: list[Action]
    ids: list[int]


class AllowedActionsBody(Wire):
    experiment_ids: Annotated[list[BoundedInt], Field(max_length=MAX_EXPERIMENTS)]


class AllowedActionsAnswer(Wire):
    groups: list[ActionGroup]


class AttemptFailure(Wire):
    """Why an attempt failed. ``run_id`` and ``allocation_id`` lead to the attempt and its log."""

    trial_id: int
    run_id: int
    allocation_id: str
    text: str
    time: Time
    log_line: int | None
    """The attempt's last error line in the log; None if it was not looked up."""


class TrialStatus(Wire):
    trial_id: int
    state: FinerState
    text: str
    since: Time
    waiting: str | None
    """Reason for waiting; None while it does not wait."""
    restarts: int
    attempt: int
    max_attempts: int
    """Attempt 2 of 6: the second of ``max_restarts`` + 1. Resuming after a pause does not count."""
    failure: AttemptFailure | None
    """Cause of the newest failed attempt; None if the trial ended otherwise."""
    progress: float
    steps: int
    note: str | None
    """What is wrong with it although it has not failed: it is silent, or reported a value that is not finite."""
    build_task_id: str | None
    """The task that builds the Python environment of this trial, which holds no slots meanwhile. None if it waits
    for no build."""


class RunTimes(Wire):
    waited_seconds: float
    """Seconds in which attempts waited for slots or started, and nothing ran."""
    ran_seconds: float
    """Seconds in which at least one attempt ran."""
    now: Time
    """End of the counted time."""


class ExperimentStatus(Wire):
    id: int
    state: FinerState
    text: str
    since: Time
    progress: float
    eta_seconds: float | None
    """Estimated from the progress and the running time; None if unknown."""
    now: Time
    submitted_at: Time
    waited_seconds: float
    ran_seconds: float
    """As in ``RunTimes``; the rest of the time since ``submitted_at`` was paused."""
    failure: AttemptFailure | None
    """Cause of the first trial that failed for good."""
    can: AllowedVerbs
    why: RefusedVerbs
    trials: list[TrialStatus]
    archived: bool


class Timeline(Wire):
    now: Time
    segments: list[TimelineSegment]
    marks: list[TimelineMark]


class ConfigOrigin(Wire):
    """Origin of the value in ``line`` of the effective configuration; ``at`` is its line in the submitted text, None if
    it is not in there."""

    line: int
    path: str
    origin: Literal["file", "cluster", "default"]
    at: int | None


class EffectiveConfig(Wire):
    text: str
    submitted: str
    origins: list[ConfigOrigin]


class ConfigCheckBody(Wire):
    config: str


class ConfigDiagnostic(Wire):
    severity: Literal["error", "warning"]
    code: str
    message: str
    path: str
    line: int
    column: int
    hint: str | None


class ConfigCheck(Wire):
    ok: bool
    diagnostics: list[ConfigDiagnostic]
