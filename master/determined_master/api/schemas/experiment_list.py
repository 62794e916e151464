"""Wire models of lists of experiments, their columns and bulk actions."""

from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import Field

from determined_master.api.schemas.base import BoundedInt, Name, Number, Pagination, RowId, Time, Wire
from determined_master.api.schemas.enums import state
from determined_master.api.schemas.experiment_status import RunTimes
from determined_master.api.schemas.experiments import Experiment
from determined_master.api.schemas.trials import Trial
from determined_master.db.models.base import MAX_INT64
from determined_master.experiment_index.bulk_selection import MAX_EXPERIMENTS
from determined_master.experiment_index.column_names import OWN, Kind, ListedColumn, Type, display_name
from determined_master.experiment_index.filters import MAX_LENGTH
from determined_master.experiment_index.repository import ListedExperiment

Cell = Number | str | bool | None
ShownState = Literal[
    "STATE_ACTIVE",
    "STATE_QUEUED",
    "STATE_BUILDING_ENVIRONMENT",
    "STATE_PULLING",
    "STATE_STARTING",
    "STATE_RUNNING",
    "STATE_PAUSED",
    "STATE_PAUSING",
    "STATE_STOPPING_COMPLETED",
    "STATE_STOPPING_CANCELED",
    "STATE_STOPPING_KILLED",
    "STATE_STOPPING_ERROR",
    "STATE_COMPLETED",
    "STATE_CANCELED",
    "STATE_ERROR",
    "STATE_DELETING",
    "STATE_DELETE_FAILED",
    "STATE_DELETED",
]
_DISPLAY_STATES: dict[str, ShownState] = {each: each for each in get_args(ShownState)}


Question = Annotated[str, Field(max_length=MAX_LENGTH)]
"""A filter or an order."""
ColumnName = Annotated[str, Field(max_length=MAX_LENGTH)]
SearchText = Annotated[str, Field(max_length=100_000)]
ExperimentIds = Annotated[list[int], Field(max_length=MAX_EXPERIMENTS)]
ChangedLabels = Annotated[list[Name], Field(max_length=100)]


class SearchIdsBody(Wire):
    project_id: BoundedInt | None = None
    filter: Question | None = None
    sort: Question | None = None
    show_archived: bool = False


class SearchBody(SearchIdsBody):
    columns: Annotated[list[ColumnName], Field(max_length=200)] = []
    offset: Annotated[int, Field(ge=0, le=MAX_INT64)] = 0
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    ids: Annotated[list[BoundedInt], Field(max_length=500)] | None = None
    """Only these of the experiments that are found; ``total`` counts all of them."""


class SearchGroupsBody(Wire):
    project_id: BoundedInt | None = None
    filter: Question | None = None
    show_archived: bool = False
    by: ColumnName


class Row(Wire):
    """One experiment in a list."""

    id: int
    name: str
    description: str
    state: ShownState
    archived: bool
    username: str
    user_id: int
    labels: list[str]
    start_time: Time
    end_time: Time | None
    progress: float
    num_trials: int
    trial_id: int | None
    """The best trial, else the only one."""
    searcher_type: str
    searcher_metric: str
    searcher_metric_value: Number | None
    smaller_is_better: bool
    forked_from: int | None
    project_id: int
    resource_pool: str
    duration_seconds: float
    checkpoint_count: int
    checkpoint_size: int
    failure: str | None
    """The cause of the first failed trial's last failure."""
    note: str | None
    """What is wrong with a running trial."""
    times: RunTimes | None
    """None unless the column ``waited`` or ``ran`` was requested."""
    cells: dict[str, Cell]
    """Values of the requested indexed columns, by column name."""


class SearchAnswer(Wire):
    total: int
    offset: int
    experiments: list[Row]
    unknown_columns: list[str]


class SearchIdsAnswer(Wire):
    ids: list[int]
    total: int


class Group(Wire):
    value: str | Number | None
    count: int


class SearchGroupsAnswer(Wire):
    groups: list[Group]


class Column(Wire):
    column: str
    kind: Kind
    type: Type
    display_name: str
    count: int
    """Number of experiments with a value."""


class ColumnsAnswer(Wire):
    columns: list[Column]
    total: int


class ColumnValuesAnswer(Wire):
    values: list[str]


class BulkFilters(Wire):
    """Filter of experiments in the path's project. Absent fields do not restrict."""

    archived: bool | None = None
    description: SearchText | None = None
    excluded_experiment_ids: Annotated[list[BoundedInt], Field(max_length=MAX_EXPERIMENTS)] | None = None
    labels: Annotated[list[Name], Field(max_length=100)] | None = None
    name: SearchText | None = None
    project_id: BoundedInt | None = None
    states: Annotated[list[Name], Field(max_length=100)] | None = None
    user_ids: Annotated[list[BoundedInt], Field(max_length=MAX_EXPERIMENTS)] | None = None


class BulkBody(Wire):
    experiment_ids: ExperimentIds = []
    project_id: BoundedInt = 0
    expected_count: int | None = None
    filters: BulkFilters | None = None
    """Alternative to ``experimentIds``: all experiments that a list with this filter shows."""


class BulkMoveBody(BulkBody):
    destination_project_id: RowId


class BulkLabelsBody(Wire):
    experiment_ids: ExperimentIds
    expected_count: int
    add: ChangedLabels = []
    remove: ChangedLabels = []


class BulkResult(Wire):
    id: int
    error: str
    """Empty on success."""


class BulkAnswer(Wire):
    results: list[BulkResult]


class ExperimentsSearchBody(Wire):
    project_id: BoundedInt | None = None
    offset: BoundedInt | None = None
    limit: BoundedInt | None = None
    sort: Question | None = None
    filter: Question | None = None


class FoundExperiment(Wire):
    experiment: Experiment
    best_trial: Trial | None


class ExperimentsSearchAnswer(Wire):
    experiments: list[FoundExperiment]
    pagination: Pagination


Location = Literal[
    "LOCATION_TYPE_EXPERIMENT",
    "LOCATION_TYPE_HYPERPARAMETERS",
    "LOCATION_TYPE_VALIDATIONS",
    "LOCATION_TYPE_TRAINING",
    "LOCATION_TYPE_CUSTOM_METRIC",
]
OlderType = Literal["COLUMN_TYPE_UNSPECIFIED", "COLUMN_TYPE_TEXT", "COLUMN_TYPE_NUMBER", "COLUMN_TYPE_DATE"]


class ProjectColumn(Wire):
    column: str
    location: Location
    type: OlderType
    display_name: str


class ProjectColumnsAnswer(Wire):
    columns: list[ProjectColumn]


class MetricsRange(Wire):
    metrics_name: str
    min: Number
    max: Number


class MetricRangesAnswer(Wire):
    ranges: list[MetricsRange]


class ExperimentLabelsAnswer(Wire):
    labels: list[str]


def row(
    shown: ListedExperiment,
    cells: dict[str, float | str | bool | None],
    now: datetime,
    times: RunTimes | None = None,
    note: str | None = None,
) -> Row:
    experiment, username, summary, word = shown
    return Row(
        id=experiment.id,
        name=experiment.name,
        description=experiment.description,
        state=_DISPLAY_STATES[state(word)],
        archived=experiment.archived,
        username=username,
        user_id=experiment.user_id,
        labels=experiment.labels,
        start_time=experiment.start_time,
        end_time=experiment.end_time,
        progress=experiment.progress,
        num_trials=summary.num_trials if summary else 0,
        trial_id=summary.trial_id if summary else None,
        searcher_type=experiment.searcher_type,
        searcher_metric=experiment.searcher_metric,
        searcher_metric_value=summary.searcher_metric_value if summary else None,
        smaller_is_better=experiment.smaller_is_better,
        forked_from=experiment.parent_id,
        project_id=experiment.project_id,
        resource_pool=experiment.pool,
        duration_seconds=((experiment.end_time or now) - experiment.start_time).total_seconds(),
        checkpoint_count=summary.checkpoint_count if summary else 0,
        checkpoint_size=summary.checkpoint_size if summary else 0,
        failure=summary.failure if summary else None,
        note=note,
        times=times,
        cells=cells,
    )


def column(one: ListedColumn) -> Column:
    own = OWN.get(one.column) if one.kind == "experiment" else None
    shown = own.display_name if own else display_name(one.kind, one.column)
    return Column(column=one.column, kind=one.kind, type=one.type, display_name=shown, count=one.count)


_OLDER_TYPES: dict[Type, OlderType] = {
    "number": "COLUMN_TYPE_NUMBER",
    "text": "COLUMN_TYPE_TEXT",
    "date": "COLUMN_TYPE_DATE",
    "boolean": "COLUMN_TYPE_TEXT",
}
_METRICS: dict[str, Location] = {
    "validation": "LOCATION_TYPE_VALIDATIONS",
    "training": "LOCATION_TYPE_TRAINING",
}


def project_column(kind: Kind, column: str, type_: Type) -> dict[str, str]:
    """A ``ProjectColumn``, written without the model: one answer may hold ten thousand."""
    location: Location = "LOCATION_TYPE_HYPERPARAMETERS" if kind == "hyperparameter" else "LOCATION_TYPE_EXPERIMENT"
    if kind == "metric":
        location = _METRICS.get(column.split(".", 1)[0], "LOCATION_TYPE_CUSTOM_METRIC")
    return {
        "column": column,
        "location": location,
        "type": _OLDER_TYPES[type_],
        "displayName": OWN[column].display_name if kind == "experiment" else display_name(kind, column),
    }
