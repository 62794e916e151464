"""Wire models of experiments."""

from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field

from determined.config.experiment import MAX_LABELS
from determined.config.masking import masked, masked_text
from determined.config.portable import portable
from determined.config.yaml_source import MAX_BYTES
from determined_master.api.schemas.base import (
    BoundedInt,
    Int64,
    Json,
    LongText,
    Name,
    Number,
    Pagination,
    RowId,
    Time,
    Wire,
)
from determined_master.api.schemas.enums import state, wire_state
from determined_master.db.models import ExperimentRow
from determined_master.db.models.base import MAX_INT64
from determined_master.experiments.code_state import CodeState
from determined_master.experiments.commands.edit import ExperimentChanges
from determined_master.trials.totals_queries import TrialTotals


class Experiment(Wire):
    id: int
    name: str
    state: str
    """State as older clients know it: PAUSED while it is pausing."""
    display_state: str
    archived: bool
    config: Json
    original_config: str
    job_id: str
    num_trials: int
    project_id: int
    project_owner_id: int
    searcher_type: str
    start_time: Time
    username: str
    best_trial_id: int | None = None
    best_trial_searcher_metric: Number | None = None
    checkpoint_count: int = 0
    checkpoint_size: Int64 = 0
    description: str = ""
    display_name: str = ""
    duration: int | None = None
    end_time: Time | None = None
    external_experiment_id: str | None = None
    external_trial_id: str | None = None
    forked_from: int | None = None
    hyperparameters: Json = {}
    labels: list[str] = []
    model_definition_size: int = 0
    notes: str = ""
    pachyderm_integration: dict[str, Any] | None = None
    parent_archived: bool = False
    progress: float | None = None
    project_name: str = "Uncategorized"
    resource_pool: str = ""
    searcher_metric: str = ""
    trial_ids: list[int] = []
    unmanaged: bool = False
    user_id: int = 0
    failure: str | None = None
    """Cause of the first failed trial; an extension of the older API."""
    health_note: str | None = None
    """What is wrong with a running trial; an extension."""
    workspace_id: int = 1
    workspace_name: str = "Uncategorized"


class JobSummary(Wire):
    state: str
    jobs_ahead: int = 0


class ExperimentAnswer(Wire):
    experiment: Experiment
    config: Json | None = None
    job_summary: JobSummary | None = None


class CreateAnswer(Wire):
    experiment: Experiment
    config: Json
    warnings: list[str] = []


# Longer configurations are refused with their limit.
ConfigText = Annotated[str, Field(max_length=2 * MAX_BYTES)]


class ContinueBody(Wire):
    id: RowId
    override_config: ConfigText | None = None


class ContinueAnswer(Wire):
    experiment: Experiment
    warnings: list[str] = []


class ExperimentsAnswer(Wire):
    experiments: list[Experiment]
    pagination: Pagination


class LabelsAnswer(Wire):
    labels: list[str]


class ExperimentResourcesPatch(Wire):
    max_slots: BoundedInt | None = None
    priority: BoundedInt | None = None
    weight: float | None = None


OptionalRowId = Annotated[int, Field(ge=0, le=MAX_INT64)] | None


class PatchStorage(Wire):
    save_experiment_best: BoundedInt | None = None
    save_trial_best: BoundedInt | None = None
    save_trial_latest: BoundedInt | None = None


class SearcherPatch(Wire):
    """Limits of a running search; what is absent stays."""

    max_trials: int | None = None
    max_concurrent_trials: int | None = None


class PatchExperimentBody(Wire):
    name: Name | None = None
    description: LongText | None = None
    labels: Annotated[list[Name], Field(max_length=MAX_LABELS)] | None = None
    notes: LongText | None = None
    resources: ExperimentResourcesPatch | None = None
    checkpoint_storage: PatchStorage | None = None
    searcher: SearcherPatch | None = None

    def changes(self) -> ExperimentChanges:
        """Returns the fields that were sent, nulls included."""
        return cast("ExperimentChanges", self.model_dump(exclude_unset=True, by_alias=False))


MAX_DIFF_CHARACTERS = 1 << 20
MAX_UNTRACKED = 1000
CodeName = Annotated[str, Field(max_length=1000)]


class CodeBody(Wire):
    """What git says about the folder of the context; an extension that the client sends."""

    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{4,64}$")] | None = None
    branch: CodeName | None = None
    remote: CodeName | None = None
    diff: Annotated[str, Field(max_length=MAX_DIFF_CHARACTERS)] = ""
    """Uncommitted changes of files that git knows."""
    is_cut: bool = False
    """True if ``diff`` or ``untracked`` is not all there is."""
    untracked: Annotated[list[CodeName], Field(max_length=MAX_UNTRACKED)] = []

    def state(self) -> CodeState:
        return CodeState(
            commit=self.commit,
            branch=self.branch,
            remote=self.remote,
            diff=self.diff,
            is_cut=self.is_cut,
            untracked=tuple(self.untracked),
        )


class ShownCode(Wire):
    """The state of the code of an experiment, with secrets masked."""

    commit: str | None
    branch: str | None
    remote: str | None
    is_dirty: bool
    """True if files that git knows had uncommitted changes."""
    is_cut: bool
    diff: str
    untracked: list[str]


class ExperimentCode(Wire):
    code: ShownCode | None = None
    """None if the client sent none, or the cluster stores none."""


class CreateBody(Wire):
    """Body without ``modelDefinition``, whose files are stored separately. Zero and null mean absent."""

    config: Annotated[ConfigText, Field(min_length=1, pattern=r"\S")]
    config_name: Annotated[str, Field(max_length=4096)] | None = None
    context_hash: Name | None = None
    parent_id: OptionalRowId = None
    project_id: OptionalRowId = None
    activate: bool | None = None
    validate_only: bool | None = None
    template: Name | None = None
    unmanaged: bool | None = None
    code: CodeBody | None = None


class ModelFile(Wire):
    """One file or folder of a context, as older clients send it; ``content`` is base64, ``type`` 53 for a folder."""

    path: str
    type: int = 48
    content: str = ""
    mtime: str | int = 0
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


def create_body_schema() -> dict[str, Any]:
    """The JSON schema of ``POST /experiments``: the fields of :class:`CreateBody` and ``modelDefinition``."""
    schema = CreateBody.model_json_schema()
    # Whole instead of a reference, which would be one of the document.
    schema["properties"]["code"] = {"anyOf": [schema.pop("$defs")["CodeBody"], {"type": "null"}], "default": None}
    schema["properties"]["modelDefinition"] = {"type": "array", "items": ModelFile.model_json_schema()}
    return schema


class BestMetricAnswer(Wire):
    metric: Number | None


class ModelDefAnswer(Wire):
    b64_tgz: str


class MaskedConfig(NamedTuple):
    """A configuration without its secrets: as data, and as the text that was submitted."""

    config: dict[str, Any]
    original: str


def shown_config(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a configuration without its secrets, and without empty fields that Determined would refuse."""
    return masked(portable(config))


def masked_config(config: dict[str, Any], original: str) -> MaskedConfig:
    return MaskedConfig(shown_config(config), masked_text(original))


def experiment(
    row: ExperimentRow,
    username: str,
    totals: TrialTotals,
    shown: str,
    without_secrets: MaskedConfig,
    failure: str | None = None,
    health_note: str | None = None,
) -> Experiment:
    """Returns the wire model. ``shown`` is the displayed state, ``failure`` why its first failed trial failed."""
    ended = row.end_time
    return Experiment(
        id=row.id or 0,
        name=row.name,
        state=wire_state(shown),
        display_state=state(shown),
        archived=row.archived,
        config=without_secrets.config,
        original_config=without_secrets.original,
        job_id=row.job_id,
        num_trials=len(totals.trial_ids),
        project_id=row.project_id,
        project_owner_id=1,
        searcher_type=row.searcher_type,
        start_time=row.start_time,
        username=username,
        best_trial_id=totals.best_trial_id,
        best_trial_searcher_metric=totals.best_metric,
        checkpoint_count=totals.checkpoint_count,
        checkpoint_size=totals.checkpoint_size,
        description=row.description,
        display_name=username,
        duration=int((ended - row.start_time).total_seconds()) if ended else None,
        end_time=ended,
        failure=failure,
        health_note=health_note,
        forked_from=row.parent_id,
        hyperparameters=row.config.get("hyperparameters") or {},
        labels=row.labels,
        model_definition_size=row.context_size,
        notes=row.notes,
        progress=row.progress,
        resource_pool=row.pool,
        searcher_metric=row.searcher_metric,
        trial_ids=totals.trial_ids,
        user_id=row.user_id,
    )
