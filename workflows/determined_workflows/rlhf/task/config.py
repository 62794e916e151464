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
from determined_workflows.rlhf.task.worker_config import (  # noqa: F401
    Args,
    DataLoader,
    Dataset,
    DataWorker,
    ExperimentScheduling,
    MasterWorker,
    Model,
    ModelBackend,
    ModelInterface,
    ModelWorker,
    RequestReplyStream,
    Scheduling,
    TasksGroup,
    WorkerInformation,
)
from determined_workflows.rlhf.task.worker_config import as_list as _as_list
from determined_workflows.rlhf.task.worker_config import named as _named
from determined_workflows.rlhf.task.yaml_config import (  # noqa: F401
    dump_config_to_yaml,
    load_config_from_yaml,
)
from determined_workflows.rlhf.task.yaml_config import register_class as _register_class


@_register_class
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
