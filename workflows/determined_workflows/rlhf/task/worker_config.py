"""Configuration and resources of each worker of an RLHF experiment."""

import dataclasses
from typing import Any

from determined_workflows.rlhf.task.dataflow import Dataflow
from determined_workflows.rlhf.task.experiment_error import ExperimentError
from determined_workflows.rlhf.task.registry import unknown_name

Args = dict[str, Any]
"""Keyword arguments that a registered maker is called with."""


SAFE_METHODS = {
    "raw_bytes": "raw_bytes",
    "raw_compress": "raw_compress",
    "obs_compress": "obs_compress",
    "compress_except_policy_state": "compress_except_policy_state",
    "pickle_dict": "raw_bytes",
    "pickle": "raw_bytes",
    "compress_pickle": "raw_compress",
    "pickle_compress": "raw_compress",
}
"""What a stream uses for each serialization method: those that pickle are replaced."""


@dataclasses.dataclass
class Scheduling:
    """Resources of one worker. Only ``gpu`` (slots) and ``env_vars`` have an effect; the pool decides about the rest.

    Parameters:
        cpu: CPU cores.
        gpu: slots; 0 for data and master workers.
        mem: memory in MB.
        env_vars: environment variables of the worker.
    """

    cpu: int
    gpu: int
    mem: int
    gpu_type: str = "tesla"
    nodelist: str | None = None
    exclude: str | None = None
    container_image: str | None = None
    env_vars: dict[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def master_worker_default(**changes: Any) -> "Scheduling":  # noqa: ANN401
        """Returns 1 core, no GPU, 20 GB, with ``changes``."""
        return Scheduling(**{"cpu": 1, "gpu": 0, "mem": 20480, **changes})

    @staticmethod
    def data_worker_default(**changes: Any) -> "Scheduling":  # noqa: ANN401
        """Returns 4 cores, no GPU, 20 GB, with ``changes``."""
        return Scheduling(**{"cpu": 4, "gpu": 0, "mem": 20480, **changes})

    @staticmethod
    def model_worker_default(**changes: Any) -> "Scheduling":  # noqa: ANN401
        """Returns 2 cores, 1 GPU, 1 GB, with ``changes``."""
        return Scheduling(**{"cpu": 2, "gpu": 1, "mem": 1024, **changes})


@dataclasses.dataclass
class TasksGroup:
    """``count`` workers of one kind, with the resources of each."""

    count: int
    scheduling: Scheduling


@dataclasses.dataclass
class ExperimentScheduling:
    """Groups of workers of each kind, one or a list, in the order of the workers of ``ExperimentConfig``."""

    data_worker: TasksGroup | list[TasksGroup]
    model_worker: TasksGroup | list[TasksGroup]
    master_worker: TasksGroup | list[TasksGroup]
    controller_image: str | None = None

    def groups(self, kind: str) -> list[TasksGroup]:
        """Returns the groups of ``"data_worker"``, ``"model_worker"`` or ``"master_worker"`` as a list."""
        groups = getattr(self, kind)
        return [groups] if isinstance(groups, TasksGroup) else list(groups)


@dataclasses.dataclass
class Dataset:
    """A dataset by the name that it is registered under, and its keyword arguments."""

    type_: str
    args: Args = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class DataLoader:
    """A dataloader by its registered name, and its keyword arguments."""

    type_: str = "default"
    args: Args = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Model:
    """A model by its registered name, and its keyword arguments."""

    type_: str
    args: Args = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ModelInterface:
    """A model interface by its registered name, and its keyword arguments."""

    type_: str
    args: Args = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ModelBackend:
    """A backend by its registered name, and its keyword arguments."""

    type_: str
    args: Args = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class RequestReplyStream:
    """The stream between the master worker and one worker.

    Parameters:
        stream_name: a name of the worker's own.
        serialization_method: one of the eight codecs of NamedArray. The four that pickle are replaced by safe ones.
    """

    stream_name: str
    serialization_method: str = "raw_bytes"

    def __post_init__(self) -> None:
        _check_stream(self.stream_name, self.serialization_method)


@dataclasses.dataclass
class WorkerInformation:
    """Which worker of which experiment and trial a configuration belongs to."""

    experiment_name: str = ""
    trial_name: str = ""
    worker_type: str = ""
    worker_index: int = -1
    worker_count: int = 0


@dataclasses.dataclass
class DataWorker:
    """A worker that reads datasets and gives batches.

    Parameters:
        tokenizer_name_or_path: what ``load_hf_tokenizer`` loads.
        datasets: datasets, concatenated; a text is the name of one without arguments.
        stream: a name of the worker's own.
        seed: seed of the order of the data; the same in all data workers.
        dataset_cahce_root: folder of the cache (spelled as in 2023); None: a folder of the trial.
    """

    tokenizer_name_or_path: str
    datasets: list[str | Dataset]
    stream: str | RequestReplyStream
    dataloader: str | DataLoader = "default"
    seed: int = 1
    use_dataset_cache: bool = False
    dataset_cahce_root: str | None = None
    worker_info: WorkerInformation | None = None

    def __post_init__(self) -> None:
        self.datasets = [named(Dataset, dataset) for dataset in as_list(self.datasets)]
        self.stream = named(RequestReplyStream, self.stream)
        self.dataloader = named(DataLoader, self.dataloader)


@dataclasses.dataclass
class ModelWorker:
    """A worker that holds one replica of a model. Workers with the same ``model_name`` are replicas of one model.

    Parameters:
        seed: seed of the worker's random streams.
        model_name: the name that ``ModelQuery`` uses.
        stream: a name of the worker's own.
        eval_datasets: datasets that ``evaluate`` gets batches of.
        cuda_cache_cleanliness: empty the CUDA cache after each call.
        dataset_cahce_root: folder of the cache (spelled as in 2023); None: a folder of the trial.
    """

    seed: int
    model: str | Model
    interface: str | ModelInterface
    backend: str | ModelBackend
    model_name: str
    stream: str | RequestReplyStream
    eval_datasets: list[str | Dataset] | None = None
    eval_dataloader: str | DataLoader | None = None
    use_dataset_cache: bool = False
    dataset_cahce_root: str | None = None
    cudnn_benchmark: bool = False
    cudnn_deterministic: bool = False
    cuda_cache_cleanliness: bool = False
    worker_info: WorkerInformation | None = None

    def __post_init__(self) -> None:
        self.model = named(Model, self.model)
        self.interface = named(ModelInterface, self.interface)
        self.backend = named(ModelBackend, self.backend)
        self.stream = named(RequestReplyStream, self.stream)
        if self.eval_datasets is not None:
            self.eval_datasets = [named(Dataset, dataset) for dataset in as_list(self.eval_datasets)]
            self.eval_dataloader = named(DataLoader, self.eval_dataloader or "default_eval")


@dataclasses.dataclass
class MasterWorker:
    """The worker that drives the dataflow; ``ExperimentConfig`` derives it."""

    total_train_epochs: int
    save_frequency_epochs: int | None
    save_frequency_steps: int | None
    save_frequency_seconds: int | None
    eval_frequency_epochs: int | None
    eval_frequency_steps: int | None
    eval_frequency_seconds: int | None
    model_streams: dict[str, list[RequestReplyStream]]
    data_stream: list[RequestReplyStream]
    leveled_exec_funcs: Dataflow
    worker_info: WorkerInformation | None = None


def _check_stream(name: str, method: str) -> None:
    if not isinstance(name, str) or not name:
        raise ExperimentError([f"a stream has a name, a text, not {name!r}"])
    if method not in SAFE_METHODS:
        raise ExperimentError([f"stream {name!r}: {unknown_name('serialization method', method, SAFE_METHODS)}"])


def named(kind: Any, given: Any) -> Any:  # noqa: ANN401
    """Returns ``given`` as a ``kind``; a text is its name."""
    if isinstance(given, str) and kind not in (DataWorker, ModelWorker):
        return kind(given)
    if not isinstance(given, kind):
        raise TypeError(f"a {kind.__name__} is needed, not {given!r}")
    return given


def as_list(given: Any) -> list[Any]:  # noqa: ANN401
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"a list is needed, not {given!r}")
    return list(given)
