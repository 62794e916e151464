"""What an RLHF experiment is made of: its workers, their models, interfaces, backends and data, and their resources.

Users' files do ``from api.config import *``; ``api/config.py`` of a project is a star import of this module.
"""

# No __all__, and imports that nothing here uses: experiment files of 2023 take `copy`, `os`, `functools` and the names
# of typing from their star import of this module. The linter is told so for each.
import copy  # noqa: F401
import dataclasses
import functools  # noqa: F401
import itertools  # noqa: F401
import math  # noqa: F401
import os  # noqa: F401
import sys  # noqa: F401
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from determined_workflows.rlhf.task import experiment_check
from determined_workflows.rlhf.task.dataflow import Dataflow, MasterWorkerECS
from determined_workflows.rlhf.task.registry import Registry
from determined_workflows.rlhf.task.yaml_config import dump_config_to_yaml, load_config_from_yaml  # noqa: F401

Args = Dict[str, Any]  # noqa: UP006
"""Keyword arguments that a registered maker is called with."""


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
        experiment_check.check_stream(self.stream_name, self.serialization_method)


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
        self.datasets = [_named(Dataset, dataset) for dataset in _as_list(self.datasets)]
        self.stream = _named(RequestReplyStream, self.stream)
        self.dataloader = _named(DataLoader, self.dataloader)


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
        self.model = _named(Model, self.model)
        self.interface = _named(ModelInterface, self.interface)
        self.backend = _named(ModelBackend, self.backend)
        self.stream = _named(RequestReplyStream, self.stream)
        if self.eval_datasets is not None:
            self.eval_datasets = [_named(Dataset, dataset) for dataset in _as_list(self.eval_datasets)]
            self.eval_dataloader = _named(DataLoader, self.eval_dataloader or "default_eval")


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


@dataclasses.dataclass
class ExperimentConfig:
    """The whole of an experiment: how long it trains, its dataflow, and each worker.

    Parameters:
        total_train_epochs: passes over the data.
        master_ecs: the functions of a step: ``MasterWorkerECS(model_worker).add_systems([...])``, built or not.
        data_worker: data workers in the order of their scheduling.
        model_worker: model workers in the order of their scheduling.
        save_frequency_epochs, save_frequency_steps, save_frequency_seconds: save when one has passed; None never.
        eval_frequency_epochs, eval_frequency_steps, eval_frequency_seconds: the same for evaluation.

    Raises:
        ExperimentError: something does not fit; it lists every fault.
    """

    total_train_epochs: int
    master_ecs: MasterWorkerECS | Dataflow
    data_worker: list[DataWorker] = dataclasses.field(default_factory=list)
    model_worker: list[ModelWorker] = dataclasses.field(default_factory=list)
    save_frequency_epochs: int | None = None
    save_frequency_steps: int | None = None
    save_frequency_seconds: int | None = 3600
    eval_frequency_epochs: int | None = None
    eval_frequency_steps: int | None = None
    eval_frequency_seconds: int | None = None
    master_worker: list[MasterWorker] = dataclasses.field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.data_worker = [_named(DataWorker, worker) for worker in _as_list(self.data_worker)]
        self.model_worker = [_named(ModelWorker, worker) for worker in _as_list(self.model_worker)]
        if not isinstance(self.master_ecs, (MasterWorkerECS, Dataflow)):
            raise TypeError(f"master_ecs is a MasterWorkerECS, built or not, not {self.master_ecs!r}")
        dataflow = self.master_ecs.build() if isinstance(self.master_ecs, MasterWorkerECS) else self.master_ecs
        experiment_check.check_config(self, dataflow)
        frequencies = {
            f"{what}_frequency_{unit}": getattr(self, f"{what}_frequency_{unit}")
            for what in ("save", "eval")
            for unit in ("epochs", "steps", "seconds")
        }
        streams: dict[str, list[RequestReplyStream]] = {}
        for worker in self.model_worker:
            streams.setdefault(worker.model_name, []).append(_named(RequestReplyStream, worker.stream))
        self.master_worker = [
            MasterWorker(
                total_train_epochs=self.total_train_epochs,
                model_streams=streams,
                data_stream=[_named(RequestReplyStream, worker.stream) for worker in self.data_worker],
                leveled_exec_funcs=dataflow,
                **frequencies,
            )
        ]

    def set_worker_information(self, experiment_name: str, trial_name: str) -> None:
        """Tells each worker's configuration its experiment, trial, type, index and count.

        Raises:
            ExperimentError: a name that cannot be used.
        """
        experiment_check.check_names(experiment_name, trial_name)
        kinds: Mapping[str, Sequence[DataWorker | ModelWorker | MasterWorker]] = {
            "data_worker": self.data_worker,
            "model_worker": self.model_worker,
            "master_worker": self.master_worker,
        }
        for kind, workers in kinds.items():
            for index, worker in enumerate(workers):
                worker.worker_info = WorkerInformation(experiment_name, trial_name, kind, index, len(workers))


class Experiment:
    """An experiment: its resources and its configuration. Derive a class and register it.

    Example:
        >>> class Warmup(Experiment):
        ...     def scheduling_setup(self):
        ...         return ExperimentScheduling(
        ...             data_worker=TasksGroup(1, Scheduling.data_worker_default()),
        ...             model_worker=[TasksGroup(2, Scheduling.model_worker_default())],
        ...             master_worker=TasksGroup(1, Scheduling.master_worker_default()),
        ...         )
        ...
        ...     def initial_setup(self):
        ...         return ExperimentConfig(total_train_epochs=1, ...)
        >>> register_experiment("warmup", Warmup)
    """

    def scheduling_setup(self) -> ExperimentScheduling:
        """Returns count and resources of each kind of worker."""
        raise NotImplementedError(f"{type(self).__name__} needs a method scheduling_setup")

    def initial_setup(self) -> ExperimentConfig:
        """Returns the configuration of the experiment and of each worker."""
        raise NotImplementedError(f"{type(self).__name__} needs a method initial_setup")


EXPERIMENTS: Registry[Experiment] = Registry("experiment")
ALL_EXPERIMENT_CLASSES = EXPERIMENTS.makers
"""Every registered class or partial by its name."""


def register_experiment(name: str, cls: Callable[..., Experiment]) -> None:
    """Registers a class, or a partial of one, under ``name``. Raises ValueError if the name is taken."""
    EXPERIMENTS.register(name, cls)


def make_experiment(name: str, **arguments: Any) -> Experiment:  # noqa: ANN401  # whatever the class takes
    """Returns a new experiment of the class registered under ``name``, called with ``arguments``.

    Raises UnknownName with the nearest name.
    """
    experiment = EXPERIMENTS.make(name, **arguments)
    for method in ("scheduling_setup", "initial_setup"):
        if not callable(getattr(experiment, method, None)):
            raise TypeError(f"the experiment {name!r} is a {type(experiment).__name__} without a method {method}")
    return experiment


def _named(kind: Any, given: Any) -> Any:  # noqa: ANN401
    """Returns ``given`` as a ``kind``; a text is its name."""
    if isinstance(given, str) and kind not in (DataWorker, ModelWorker):
        return kind(given)
    if not isinstance(given, kind):
        raise TypeError(f"a {kind.__name__} is needed, not {given!r}")
    return given


def _as_list(given: Any) -> list[Any]:  # noqa: ANN401
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"a list is needed, not {given!r}")
    return list(given)
