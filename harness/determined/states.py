"""State enums of the API. The master has the tables of transitions (docs/architecture/states.md)."""

from enum import Enum

_STATE_PHRASES = {
    "ERROR": "failed",
    "STOPPING_COMPLETED": "completing",
    "STOPPING_CANCELED": "canceling",
    "STOPPING_KILLED": "killing",
    "STOPPING_ERROR": "failing",
}


def state_phrase(value: str) -> str:
    """Returns a stored state in words.

    >>> state_phrase("ERROR"), state_phrase("STOPPING_CANCELED"), state_phrase("PARTIALLY_DELETED")
    ('failed', 'canceling', 'partially deleted')
    """
    return _STATE_PHRASES.get(value, value.lower().replace("_", " "))


def state_clause(value: str) -> str:
    """Returns a stored state as the predicate of a sentence.

    >>> state_clause("COMPLETED"), state_clause("ERROR"), state_clause("DELETE_FAILED")
    ('is completed', 'has failed', 'could not be deleted')
    """
    return {"ERROR": "has failed", "DELETE_FAILED": "could not be deleted"}.get(value, f"is {state_phrase(value)}")


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
    def is_ended(self) -> bool:
        """Returns True after the work has ended, unless the experiment is deleted or being deleted."""
        return self in (ExperimentState.COMPLETED, ExperimentState.CANCELED, ExperimentState.ERROR)

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


class TaskKind(str, Enum):
    """Kind of a task; values as in the API without the ``TASK_TYPE_`` prefix."""

    TRIAL = "TRIAL"
    COMMAND = "COMMAND"
    SHELL = "SHELL"
    """A container that is there to be entered."""
    CHECKPOINT_GC = "CHECKPOINT_GC"
    ENVIRONMENT = "ENVIRONMENT"
    """Builds a Python environment."""
    SEARCH = "SEARCH"
    """Runs a search method that is not the master's own."""

    @property
    def wire(self) -> str:
        """Returns its name in the API, where ``GENERIC`` stands for kinds that it does not know."""
        return "GENERIC" if self in (TaskKind.ENVIRONMENT, TaskKind.SEARCH) else self.value


class TaskState(str, Enum):
    """State of a task that is not a trial; a trial has a state of its own."""

    ACTIVE = "ACTIVE"  # wants an allocation or has one
    STOPPING = "STOPPING"  # killed by a user, or idle for too long; its allocation is ending
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    ERROR = "ERROR"

    @property
    def is_terminal(self) -> bool:
        return self in (TaskState.COMPLETED, TaskState.CANCELED, TaskState.ERROR)

    @property
    def is_live(self) -> bool:
        return not self.is_terminal

    @property
    def is_final(self) -> bool:
        """Returns True if no other state can follow: an ended task is not run again."""
        return self.is_terminal


class TokenScope(str, Enum):
    """Rows to which the token of a task may write, besides its own allocation and log. It reads as its owner does."""

    TRIAL = "trial"  # its trial: metrics, checkpoints, progress
    SEARCH = "search"  # the search of its experiment: actions and snapshot
    ALLOCATION = "allocation"  # nothing else


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


class InstanceState(str, Enum):
    """State of an instance: an agent that the provider of its pool starts and ends; moves forward only."""

    STARTING = "STARTING"  # its start was ordered; its agent has not registered yet
    RUNNING = "RUNNING"  # its agent has registered
    ENDING = "ENDING"  # its end is ordered; nothing is placed on it, and its agent is refused
    ENDED = "ENDED"

    @property
    def is_final(self) -> bool:
        return self is InstanceState.ENDED

    @property
    def is_live(self) -> bool:
        """Returns True while it may exist, so that it counts for the maximum of its pool."""
        return self is not InstanceState.ENDED


class CheckpointRole(str, Enum):
    """Kind of the content of a checkpoint."""

    STATE = "state"  # the state of the training, from which the next attempt goes on
    OUTPUTS = "outputs"  # files that a script wrote, which are put back before the next attempt


class CheckpointState(str, Enum):
    """State of a checkpoint."""

    ACTIVE = "ACTIVE"  # being written
    COMPLETED = "COMPLETED"  # whole
    ERROR = "ERROR"  # failed while being written
    PARTIALLY_DELETED = "PARTIALLY_DELETED"  # some of its files were removed
    DELETING = "DELETING"  # its files are being removed
    DELETE_FAILED = "DELETE_FAILED"  # some of its files could not be removed; deleting it again tries again
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
    RETRIES_CANCELED = "retries_canceled"  # a log policy matched a line of the attempt that failed
    INVALID_HP = "invalid_hp"
    NO_CHECKPOINT = "no_checkpoint"  # its attempts ended with their agents, and had stored no checkpoint
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
    ExitReason.RETRIES_CANCELED: "restarts canceled by a log policy",
    ExitReason.INVALID_HP: "invalid hyperparameters",
    ExitReason.IMPOSSIBLE: "cannot be scheduled",
    ExitReason.NO_CHECKPOINT: "saved no checkpoint before its agents left",
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
