"""States, orders and modes of the SDK. Values are those of the API."""

from enum import Enum
from typing import TypeVar

W = TypeVar("W", bound=Enum)


class ExperimentState(Enum):
    """State of an experiment.

    Example:
        >>> ExperimentState.COMPLETED.is_terminal
        True
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"
    PAUSED = "STATE_PAUSED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"
    DELETING = "STATE_DELETING"
    DELETE_FAILED = "STATE_DELETE_FAILED"
    DELETED = "STATE_DELETED"

    @property
    def is_terminal(self) -> bool:
        """True if the state is final."""
        return self.name in ("COMPLETED", "CANCELED", "ERROR", "DELETING", "DELETE_FAILED", "DELETED")


class TrialState(Enum):
    """State of a trial.

    Example:
        >>> TrialState("STATE_RUNNING").name
        'RUNNING'
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"
    PAUSED = "STATE_PAUSED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"

    @property
    def is_terminal(self) -> bool:
        """True if the state is final."""
        return self.name in ("COMPLETED", "CANCELED", "ERROR")


class CheckpointState(Enum):
    """State of a checkpoint.

    Example:
        >>> CheckpointState.COMPLETED.value
        'STATE_COMPLETED'
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    COMPLETED = "STATE_COMPLETED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    PARTIALLY_DELETED = "STATE_PARTIALLY_DELETED"


class OrderBy(Enum):
    """Direction of a list.

    Example:
        >>> OrderBy.DESC is OrderBy.DESCENDING
        True
    """

    ASC = "ORDER_BY_ASC"
    DESC = "ORDER_BY_DESC"
    ASCENDING = ASC
    DESCENDING = DESC


class ExperimentSortBy(Enum):
    """Column that orders a list of experiments.

    Example:
        >>> ExperimentSortBy.NAME.value
        'SORT_BY_NAME'
    """

    ID = "SORT_BY_ID"
    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    PROGRESS = "SORT_BY_PROGRESS"
    USER = "SORT_BY_USER"
    FORKED_FROM = "SORT_BY_FORKED_FROM"
    RESOURCE_POOL = "SORT_BY_RESOURCE_POOL"
    PROJECT_ID = "SORT_BY_PROJECT_ID"


class TrialSortBy(Enum):
    """Column that orders a list of trials.

    Example:
        >>> TrialSortBy.START_TIME.value
        'SORT_BY_START_TIME'
    """

    ID = "SORT_BY_ID"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    BEST_VALIDATION_METRIC = "SORT_BY_BEST_VALIDATION_METRIC"
    LATEST_VALIDATION_METRIC = "SORT_BY_LATEST_VALIDATION_METRIC"
    BATCHES_PROCESSED = "SORT_BY_BATCHES_PROCESSED"
    DURATION = "SORT_BY_DURATION"
    RESTARTS = "SORT_BY_RESTARTS"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"


class CheckpointSortBy(Enum):
    """Attribute that orders a list of checkpoints. The name of a validation metric may be given in its place.

    Example:
        >>> CheckpointSortBy.END_TIME.value
        'SORT_BY_END_TIME'
    """

    UUID = "SORT_BY_UUID"
    TRIAL_ID = "SORT_BY_TRIAL_ID"
    BATCH_NUMBER = "SORT_BY_BATCH_NUMBER"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    SEARCHER_METRIC = "SORT_BY_SEARCHER_METRIC"


class DownloadMode(Enum):
    """Method of downloading the files of a checkpoint.

    ``AUTO`` copies from the storage if this machine reaches it, and asks the master otherwise; ``DIRECT`` and
    ``MASTER`` do only the one or the other.

    Example:
        >>> DownloadMode("master") is DownloadMode.MASTER
        True
    """

    AUTO = "auto"
    DIRECT = "direct"
    MASTER = "master"


class LogLevel(Enum):
    """Level of a log line.

    Example:
        >>> LogLevel.WARNING.value
        'LOG_LEVEL_WARNING'
    """

    TRACE = "LOG_LEVEL_TRACE"
    DEBUG = "LOG_LEVEL_DEBUG"
    INFO = "LOG_LEVEL_INFO"
    WARNING = "LOG_LEVEL_WARNING"
    ERROR = "LOG_LEVEL_ERROR"
    CRITICAL = "LOG_LEVEL_CRITICAL"


def from_wire(kind: type[W], value: object) -> W:
    """Returns the member of a wire value; UNSPECIFIED for one that a newer master may send."""
    try:
        return kind(value)
    except ValueError:
        return kind["UNSPECIFIED"]
