"""The outcome of an attempt of a task that is not a trial."""

import pytest

from determined.states import ExitReason, TaskKind, TaskState, TokenScope
from determined_master.tasks.states import POLICIES, AttemptEnd, TaskOutcome, backoff_seconds, decide

COMMAND, CLEANUP = TaskKind.COMMAND, TaskKind.CHECKPOINT_GC
AGAIN = None


def outcome(
    kind: TaskKind, reason: ExitReason, *, failures: int = 0, state: TaskState = TaskState.ACTIVE
) -> TaskOutcome:
    return decide(AttemptEnd(kind, state, reason, failures))


@pytest.mark.parametrize(
    ("kind", "reason", "failures", "state"),
    [
        (COMMAND, ExitReason.COMPLETED, 0, TaskState.COMPLETED),
        (COMMAND, ExitReason.ERRORED, 0, TaskState.ERROR),
        (COMMAND, ExitReason.IMPOSSIBLE, 0, TaskState.ERROR),
        (COMMAND, ExitReason.SYSTEM, 0, AGAIN),
        (COMMAND, ExitReason.AGENT_LOST, 4, AGAIN),
        (COMMAND, ExitReason.AGENT_LOST, 5, TaskState.ERROR),
        (COMMAND, ExitReason.KILLED, 5, AGAIN),
        (COMMAND, ExitReason.PREEMPTED, 5, AGAIN),
        (CLEANUP, ExitReason.ERRORED, 0, AGAIN),
        (CLEANUP, ExitReason.ERRORED, 5, TaskState.ERROR),
        (CLEANUP, ExitReason.IMPOSSIBLE, 0, TaskState.ERROR),
    ],
)
def test_the_outcome_depends_on_the_kind_and_the_reason(kind, reason, failures, state):
    assert outcome(kind, reason, failures=failures).state is state


def test_a_command_killed_on_a_disabled_agent_is_not_run_again():
    def ended(kind: TaskKind) -> TaskOutcome:
        return decide(AttemptEnd(kind, TaskState.ACTIVE, ExitReason.KILLED, 0, is_shut_out=True))

    assert ended(COMMAND) == TaskOutcome(TaskState.ERROR, ExitReason.KILLED)
    assert ended(CLEANUP) == TaskOutcome(None)


@pytest.mark.parametrize("reason", list(ExitReason))
def test_a_killed_task_is_canceled_however_its_attempt_ended(reason):
    assert outcome(COMMAND, reason, state=TaskState.STOPPING) == TaskOutcome(TaskState.CANCELED, ExitReason.KILLED)


def test_only_system_failures_of_a_task_are_counted_and_back_off():
    assert outcome(COMMAND, ExitReason.KILLED, failures=3) == TaskOutcome(None, failures=3)
    assert outcome(COMMAND, ExitReason.SYSTEM, failures=0) == TaskOutcome(None, failures=1)
    assert outcome(COMMAND, ExitReason.SYSTEM, failures=3) == TaskOutcome(None, failures=4, backoff=4.0)


def test_the_back_off_doubles_up_to_five_minutes():
    assert [backoff_seconds(failures) for failures in (0, 1, 2, 3, 9, 30)] == [0.0, 0.0, 1.0, 2.0, 128.0, 300.0]


def test_no_token_of_a_task_other_than_a_trial_may_write_to_a_trial():
    scopes = {kind: policy.token_scope for kind, policy in POLICIES.items()}
    assert scopes.pop(TaskKind.SEARCH) is TokenScope.SEARCH
    assert set(scopes.values()) == {TokenScope.ALLOCATION}
    assert POLICIES.keys() == set(TaskKind) - {TaskKind.TRIAL}
