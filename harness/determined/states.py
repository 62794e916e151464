"""State enums of the API. The master has the tables of transitions (docs/architecture/states.md)."""

from enum import Enum


class ExperimentState(str, Enum):
    """State of an experiment; values as in the API without the ``STATE_`` prefix."""

    ACTIVE = "ACTIVE"  # its unfinished trials want slots or hold them
    PAUSED = "PAUSED"  # no trial of it may hold slots for longer than it needs to checkpoint
    STOPPING_COMPLETED = "STOPPING_COMPLETED"  # the search is over; live trials are being closed
    STOPPING_CANCELED = "STOPPING_CANCELED"  # a user asked for a graceful end
    STOPPING_KILLED = "STOPPING_KILLED"  # a user asked for the end at once
    STOPPING_ERROR = "STOPPING_ERROR"  # it failed; live trials are being closed
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"
    DELETING = "DELETING"  # files and rows are going
    DELETE_FAILED = "DELETE_FAILED"  # deleting stopped half way; may be tried again
    DELETED = "DELETED"  # nothing can follow

    @property
    def is_terminal(self) -> bool:
        """Returns True after the work has ended."""
        return self in _EXPERIMENT_TERMINAL

    @property
    def is_stopping(self) -> bool:
        return self.value.startswith("STOPPING_")

    @property
    def is_live(self) -> bool:
        """Returns True while work may continue."""
        return not self.is_terminal

    @property
    def is_final(self) -> bool:
        """Returns True if no other state can follow."""
        return self is ExperimentState.DELETED


_EXPERIMENT_TERMINAL = frozenset(
    {
        ExperimentState.COMPLETED,
        ExperimentState.CANCELED,
        ExperimentState.ERROR,
        ExperimentState.DELETING,
        ExperimentState.DELETE_FAILED,
        ExperimentState.DELETED,
    }
)


class TrialState(str, Enum):
    """State of a trial; values as in the API without the ``STATE_`` prefix."""

    ACTIVE = "ACTIVE"  # wants an allocation or has one
    PAUSED = "PAUSED"  # wants none; one may still be checkpointing
    STOPPING_COMPLETED = "STOPPING_COMPLETED"  # the search wants no more of it
    STOPPING_CANCELED = "STOPPING_CANCELED"  # graceful end asked for
    STOPPING_KILLED = "STOPPING_KILLED"  # end at once asked for
    STOPPING_ERROR = "STOPPING_ERROR"  # failed beyond repair, container still going
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"

    @property
    def is_terminal(self) -> bool:
        return self in (TrialState.COMPLETED, TrialState.CANCELED, TrialState.ERROR)

    @property
    def is_stopping(self) -> bool:
        return self.value.startswith("STOPPING_")

    @property
    def is_live(self) -> bool:
        return not self.is_terminal

    @property
    def is_final(self) -> bool:
        """Returns False: a finished trial may be continued."""
        return False


class AllocationState(str, Enum):
    """State of an allocation; moves forward only."""

    PENDING = "PENDING"  # waits for slots
    ASSIGNED = "ASSIGNED"  # slots held, agent told
    PULLING = "PULLING"  # environment and context being fetched
    STARTING = "STARTING"  # container starting
    RUNNING = "RUNNING"  # the container runs
    TERMINATING = "TERMINATING"  # told to go
    TERMINATED = "TERMINATED"  # slots free

    @property
    def is_terminal(self) -> bool:
        return self is AllocationState.TERMINATED

    @property
    def is_live(self) -> bool:
        return not self.is_terminal

    @property
    def is_final(self) -> bool:
        return self is AllocationState.TERMINATED


class ContainerState(str, Enum):
    """State of a container, one process group on one agent; moves forward only."""

    ASSIGNED = "ASSIGNED"
    PULLING = "PULLING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"

    @property
    def is_terminal(self) -> bool:
        return self is ContainerState.TERMINATED

    @property
    def is_final(self) -> bool:
        return self is ContainerState.TERMINATED


class CheckpointState(str, Enum):
    """State of a checkpoint."""

    ACTIVE = "ACTIVE"  # being written
    COMPLETED = "COMPLETED"  # whole
    ERROR = "ERROR"  # failed while being written
    PARTIALLY_DELETED = "PARTIALLY_DELETED"  # some of its files were removed
    DELETED = "DELETED"

    @property
    def is_final(self) -> bool:
        return self is CheckpointState.DELETED


class ExitReason(str, Enum):
    """Reason for the end of an allocation or a trial. Not a state."""

    COMPLETED = "completed"  # exit 0 without a preemption acknowledged
    PREEMPTED = "preempted"  # exit 0 after the acknowledgement
    USER_CANCELED = "user_canceled"
    KILLED = "killed"  # the master asked for it
    ERRORED = "errored"  # a container failed by itself
    SYSTEM = "system"  # agent, engine or shim failed; not the task's fault
    AGENT_LOST = "agent_lost"
    OUT_OF_RESTARTS = "out_of_restarts"
    INVALID_HP = "invalid_hp"
    IMPOSSIBLE = "impossible"  # no agent of the pool can ever hold it
    SEARCHER_STOPPED = "searcher_stopped"

    @property
    def is_system_failure(self) -> bool:
        """Returns True for failures that do not count as a restart."""
        return self in (ExitReason.SYSTEM, ExitReason.AGENT_LOST)

    @property
    def phrase(self) -> str:
        """Returns the reason in words.

        >>> ExitReason.IMPOSSIBLE.phrase
        'cannot be scheduled'
        """
        return _PHRASES.get(self, self.value.replace("_", " "))


_PHRASES = {
    ExitReason.PREEMPTED: "saved a checkpoint and exited",
    ExitReason.USER_CANCELED: "canceled by a user",
    ExitReason.ERRORED: "failed",
    ExitReason.SYSTEM: "system failure",
    ExitReason.INVALID_HP: "invalid hyperparameters",
    ExitReason.IMPOSSIBLE: "cannot be scheduled",
    ExitReason.SEARCHER_STOPPED: "stopped by the search",
}


def exit_phrase(value: str) -> str:
    """Returns the words of an exit reason's stored value; of an unknown value its own words.

    >>> exit_phrase("invalid_hp"), exit_phrase("out_of_restarts"), exit_phrase("of_another_version")
    ('invalid hyperparameters', 'out of restarts', 'of another version')
    """
    try:
        return ExitReason(value).phrase
    except ValueError:
        return value.replace("_", " ")
