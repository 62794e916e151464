"""All tables. Importing this package completes the metadata."""

from determined_master.db.models.agents import AgentRow, AgentSlotRow, InstanceRow
from determined_master.db.models.allocations import AllocationRow, ContainerRow, SlotHoldRow
from determined_master.db.models.checkpoints import CheckpointRow, StorageBackendRow
from determined_master.db.models.cluster import ClusterRow, EventRow
from determined_master.db.models.columns import (
    ColumnCountRow,
    ColumnNameRow,
    ColumnValueRow,
    ExperimentLabelRow,
    ExperimentSummaryRow,
)
from determined_master.db.models.experiments import ExperimentCodeRow, ExperimentRow, SearchEventRow
from determined_master.db.models.logs import LogPolicyMatchRow, LogRow
from determined_master.db.models.metrics import MetricRow
from determined_master.db.models.series import ChunkRow, SeriesCursorRow, SeriesRow
from determined_master.db.models.tasks import EnvironmentWaitRow, JobRow, TaskRow
from determined_master.db.models.trials import TrialRow
from determined_master.db.models.users import (
    ProjectRow,
    SessionRow,
    SignInLinkRow,
    UserRow,
    UserSettingRow,
    WorkspaceRow,
)

__all__ = [
    "AgentRow",
    "AgentSlotRow",
    "AllocationRow",
    "CheckpointRow",
    "ChunkRow",
    "ClusterRow",
    "ColumnCountRow",
    "ColumnNameRow",
    "ColumnValueRow",
    "ContainerRow",
    "EnvironmentWaitRow",
    "EventRow",
    "ExperimentCodeRow",
    "ExperimentLabelRow",
    "ExperimentRow",
    "ExperimentSummaryRow",
    "InstanceRow",
    "JobRow",
    "LogPolicyMatchRow",
    "LogRow",
    "MetricRow",
    "ProjectRow",
    "SearchEventRow",
    "SeriesCursorRow",
    "SeriesRow",
    "SessionRow",
    "SignInLinkRow",
    "SlotHoldRow",
    "StorageBackendRow",
    "TaskRow",
    "TrialRow",
    "UserRow",
    "UserSettingRow",
    "WorkspaceRow",
]
