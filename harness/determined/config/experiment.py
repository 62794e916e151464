"""The experiment configuration as a whole."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from determined.config import patterns
from determined.config.environment import Environment
from determined.config.launch import Health, LaunchSection
from determined.config.model import Count, Entrypoint, Length, Model, OneLength, kind_of, wrong
from determined.config.outputs import Outputs
from determined.config.pause import Pause
from determined.config.resources import Resources
from determined.config.searcher import AnySearcher
from determined.config.storage import AbsolutePath, AnyStorage, Propagation

ZERO = Length(batches=0)
UINT32 = 2**32 - 1
MAX_LABELS = 10_000
MAX_METRIC_GOALS = 200
MAX_METRIC_NAME = 200
_LOOKAROUND = re.compile(r"\(\?<?[=!]|\\[1-9]")
MAX_PREEMPTION_TIMEOUT_SECONDS = 2**31 - 1
"""Maximum of a 32-bit column; 68 years, so that adding it to a date never overflows."""


def _labels(value: object) -> object:
    if isinstance(value, dict):
        return [name for name, is_set in value.items() if is_set]
    return value


def _few_goals(value: object) -> object:
    """Bounds what lists of many experiments read of each."""
    if isinstance(value, dict):
        if len(value) > MAX_METRIC_GOALS:
            raise wrong("E205", f"{len(value)} metrics; at most {MAX_METRIC_GOALS}")
        for name in value:
            if isinstance(name, str) and len(name) > MAX_METRIC_NAME:
                raise wrong("E205", f"a name with {len(name)} characters; at most {MAX_METRIC_NAME}", name)
    return value


def _pattern(value: object) -> object:
    if isinstance(value, str):
        try:
            patterns.compiled(value)
        except patterns.PatternError as error:
            lookaround = f". {patterns.NOT_SUPPORTED}" if _LOOKAROUND.search(value) else ""
            raise wrong("E206", f"not a regular expression of RE2: {error}{lookaround}") from None
    return value


def _action(value: object) -> object:
    if isinstance(value, dict) and set(value) == {"type"}:
        return value["type"]
    if not isinstance(value, str):
        raise wrong("E201", f"expected cancel_retries or exclude_node, got {kind_of(value)}")
    return value


class BindMount(Model):
    """A folder of the host that the task sees at ``container_path``."""

    host_path: AbsolutePath
    container_path: Annotated[str, Field(min_length=1)]
    read_only: bool = False
    propagation: Propagation = "rprivate"


class Reproducibility(Model):
    """The seed of all randomness."""

    experiment_seed: Annotated[int, Field(ge=0, le=UINT32)]


class Profiling(Model):
    """Reporting of system metrics in addition to the training metrics."""

    enabled: bool = False
    begin_on_batch: Count = 0
    end_after_batch: Count | None = None
    sync_timings: bool = True


class Optimizations(Model):
    """Settings of configurations for Determined of 2022 for distributed training."""

    aggregation_frequency: Annotated[int, Field(ge=1)] = 1
    average_aggregated_gradients: bool = True
    average_training_metrics: bool = True
    gradient_compression: bool = False
    grad_updates_size_file: str | None = None
    mixed_precision: Literal["O0", "O1", "O2", "O3"] = "O0"
    tensor_fusion_threshold: Count = 64
    tensor_fusion_cycle_time: Count = 1
    auto_tune_tensor_fusion: bool = False


class LogPolicy(Model):
    """An action that runs when a line of the log matches."""

    name: str | None = None
    pattern: Annotated[str | None, BeforeValidator(_pattern)] = None
    action: Annotated[Literal["cancel_retries", "exclude_node"], BeforeValidator(_action)] | None = None


class Retention(Model):
    """The time for which logs are kept; -1 means for ever."""

    log_retention_days: Annotated[int, Field(ge=-1, le=32767)] | None = None


class Slurm(Model):
    """Options for pools that Slurm manages."""

    slots_per_node: Annotated[int, Field(ge=1)] | None = None
    gpu_type: str | None = None
    sbatch_args: list[str] = []


class Pbs(Model):
    """Options for pools that PBS manages."""

    slots_per_node: Annotated[int, Field(ge=1)] | None = None
    pbsbatch_args: list[str] = []


class Webhooks(Model):
    """The webhooks that receive events of this experiment."""

    webhook_id: list[int] | None = None
    webhook_name: list[str] | None = None
    exclude: bool = False


class Integrations(Model):
    """Connections to other services."""

    webhooks: Webhooks | None = None
    pachyderm: dict[str, Any] | None = None


DEFAULT_POLICIES = (
    LogPolicy(name="CUDA OOM", pattern=".*CUDA out of memory.*"),
    LogPolicy(name="ECC Error", pattern=".*uncorrectable ECC error encountered.*"),
)


class ExperimentConfig(Model):
    """A checked configuration with every default filled in; made by :func:`determined.config.check`."""

    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    labels: Annotated[list[str], BeforeValidator(_labels), Field(max_length=MAX_LABELS)] = []
    data: dict[str, Any] = {}
    workspace: str = ""
    project: str = ""
    entrypoint: Entrypoint
    hyperparameters: dict[str, Any] = {}
    searcher: AnySearcher
    metric_goals: Annotated[dict[str, Literal["minimize", "maximize"]], BeforeValidator(_few_goals)] = {}
    resources: Resources = Resources()
    environment: Environment = Environment()
    checkpoint_storage: AnyStorage
    checkpoint_policy: Literal["best", "all", "none"] = "best"
    min_validation_period: OneLength = ZERO
    min_checkpoint_period: OneLength = ZERO
    perform_initial_validation: bool = False
    scheduling_unit: Annotated[int, Field(ge=1)] = 100
    records_per_epoch: Count = 0
    max_restarts: Count = 5
    bind_mounts: list[BindMount] = []
    reproducibility: Reproducibility
    profiling: Profiling = Profiling()
    optimizations: Optimizations = Optimizations()
    log_policies: list[LogPolicy] = list(DEFAULT_POLICIES)
    retention_policy: Retention = Retention()
    preemption_timeout: Annotated[int, Field(ge=0, le=MAX_PREEMPTION_TIMEOUT_SECONDS)] | None = None
    pause: Pause | None = None
    outputs: Outputs = []
    integrations: Integrations | None = None
    slurm: Slurm = Slurm()
    pbs: Pbs = Pbs()
    debug: bool = False
    health: Health = Health()
    launch: LaunchSection = LaunchSection()
    legacy_launcher: Literal["torch_distributed", "horovod", "process"] | None = None

    def to_json(self) -> dict[str, Any]:
        values = self.model_dump(mode="json")
        for field in ("min_validation_period", "min_checkpoint_period"):
            values[field] = getattr(self, field).to_json()
        return values


DEAD_FIELDS = ("security", "tensorboard_storage", "data_layer", "internal")
"""Fields that old configurations may have; without effect."""
