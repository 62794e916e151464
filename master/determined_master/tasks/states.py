"""States of a task that is not a trial: allowed transitions (docs/architecture/states.md), and the outcome of an
attempt's end, also as a line of the log."""

from collections.abc import Mapping
from dataclasses import dataclass

from determined.states import ExitReason, TaskKind, TokenScope
from determined.states import TaskState as S
from determined_master.states.transitions import Table

ALLOWED: Table[S] = {
    S.ACTIVE: frozenset({S.STOPPING, S.COMPLETED, S.CANCELED, S.ERROR}),
    S.STOPPING: frozenset({S.CANCELED}),
    S.COMPLETED: frozenset(),
    S.CANCELED: frozenset(),
    S.ERROR: frozenset(),
}

FIRST = S.ACTIVE


@dataclass(frozen=True)
class Policy:
    """How tasks of one kind restart, and what their tokens may write."""

    max_failures: int
    """Number of failed attempts that are followed by another one."""
    is_idempotent: bool
    """True if it also runs again after it failed by itself."""
    token_scope: TokenScope = TokenScope.ALLOCATION


POLICIES: Mapping[TaskKind, Policy] = {
    TaskKind.COMMAND: Policy(max_failures=5, is_idempotent=False),
    TaskKind.SHELL: Policy(max_failures=5, is_idempotent=False),
    TaskKind.CHECKPOINT_GC: Policy(max_failures=5, is_idempotent=True),
    TaskKind.ENVIRONMENT: Policy(max_failures=5, is_idempotent=False),
    TaskKind.SEARCH: Policy(max_failures=5, is_idempotent=True, token_scope=TokenScope.SEARCH),
}
"""By kind; trials have rules of their own."""


@dataclass(frozen=True)
class AttemptEnd:
    """How an attempt ended, and the task's state and counter at that time."""

    kind: TaskKind
    state: S
    reason: ExitReason
    failures: int
    is_shut_out: bool = False
    """True if it had begun on an agent or a slot that was disabled."""


@dataclass(frozen=True)
class TaskOutcome:
    """Outcome for the task. If ``state`` is None, another attempt follows after ``backoff`` seconds."""

    state: S | None
    reason: ExitReason | None = None
    failures: int = 0
    backoff: float = 0.0


def decide(end: AttemptEnd) -> TaskOutcome:
    """Returns the outcome by the first rule that matches.

    A cluster that shuts down and an agent that is disabled end attempts (KILLED, PREEMPTED) without any failure. On a
    disabled agent the administrator has ended a command or a shell: what it has done is not done a second time.
    """
    if end.state is S.STOPPING:
        return TaskOutcome(S.CANCELED, ExitReason.KILLED, end.failures)
    if end.reason is ExitReason.COMPLETED:
        return TaskOutcome(S.COMPLETED, ExitReason.COMPLETED, end.failures)
    if end.kind in _OF_USERS and end.reason is ExitReason.KILLED and end.is_shut_out:
        return TaskOutcome(S.ERROR, ExitReason.KILLED, end.failures)
    if end.reason in (ExitReason.KILLED, ExitReason.PREEMPTED):
        return TaskOutcome(None, failures=end.failures)
    policy = POLICIES[end.kind]
    may_follow = end.reason.is_system_failure or (policy.is_idempotent and end.reason is ExitReason.ERRORED)
    if not may_follow or end.failures >= policy.max_failures:
        return TaskOutcome(S.ERROR, end.reason, end.failures)
    failures = end.failures + 1
    return TaskOutcome(None, failures=failures, backoff=backoff_seconds(failures))


def backoff_seconds(failures: int) -> float:
    """Returns the back-off: none after the first of consecutive failures, minutes after the tenth."""
    return 0.0 if failures <= 1 else min(300.0, 2.0 ** min(failures - 2, 9))


_OF_USERS = (TaskKind.COMMAND, TaskKind.SHELL)
_NOUNS = {
    TaskKind.COMMAND: "the command",
    TaskKind.SHELL: "the shell",
    TaskKind.CHECKPOINT_GC: "the clean-up of checkpoints",
    TaskKind.ENVIRONMENT: "the build of the environment",
    TaskKind.SEARCH: "the search",
}


def sequel(kind: TaskKind, outcome: TaskOutcome, cause: str) -> str:
    """Returns the log's line about a failed attempt and what follows.

    >>> sequel(TaskKind.COMMAND, TaskOutcome(None, failures=2, backoff=1.0), "agent a was lost")
    'the command was interrupted: agent a was lost; it starts again in 1 s (interruption 2 of at most 5)'
    """
    noun = _NOUNS.get(kind, "the task")
    if outcome.state is not None:
        if outcome.reason is ExitReason.IMPOSSIBLE:
            return f"{noun} cannot start: {cause} (request unfulfillable)"
        return f"{noun} failed: {cause}"
    when = f" in {outcome.backoff:.0f} s" if outcome.backoff else ""
    most = POLICIES[kind].max_failures
    return f"{noun} was interrupted: {cause}; it starts again{when} (interruption {outcome.failures} of at most {most})"
