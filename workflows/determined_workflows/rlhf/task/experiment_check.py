"""Checks of an experiment when it is built: names, counts, streams, models, batch sizes. Nothing runs before them."""

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, Protocol

from determined_workflows.rlhf.task.dataflow import Dataflow
from determined_workflows.rlhf.task.experiment_error import ExperimentError
from determined_workflows.rlhf.task.registry import (
    BACKENDS,
    DATALOADERS,
    DATASETS,
    INTERFACES,
    MODELS,
    Registry,
    UnknownName,
    unknown_name,
)
from determined_workflows.rlhf.task.worker_config import (
    SAFE_METHODS,
    DataWorker,
    ExperimentScheduling,
    MasterWorker,
    ModelWorker,
    Scheduling,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,63}")
MODEL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
KINDS = ("data_worker", "model_worker", "master_worker")
RESERVED = ("master_worker", "data_worker")
"""Names of the other workers."""
DEFAULT_BATCH_SIZE = 8
WITHOUT_EFFECT = ("cpu", "mem", "gpu_type", "nodelist", "exclude", "container_image")


class Workers(Protocol):
    """The workers of an experiment: ``config.ExperimentConfig``."""

    @property
    def total_train_epochs(self) -> int: ...

    @property
    def data_worker(self) -> Sequence[DataWorker]: ...

    @property
    def model_worker(self) -> Sequence[ModelWorker]: ...

    @property
    def master_worker(self) -> Sequence[MasterWorker]: ...


def check_names(experiment_name: str, trial_name: str) -> None:
    """Raises ExperimentError for names of an experiment and a trial that cannot be used."""
    problems = []
    for kind, name in (("experiment", experiment_name), ("trial", trial_name)):
        if "_" in name:
            problems.append(f"the {kind} name {name!r} has a '_': use '-', as {name.replace('_', '-')!r}")
        elif not NAME.fullmatch(name):
            problems.append(f"the {kind} name {name!r} is not 1 to 64 letters, digits, '-' and '.'")
    _raise(problems)


def check_config(config: Workers, dataflow: Dataflow) -> None:
    """Raises ExperimentError with every fault of the workers' configurations."""
    problems = [*_numbers(config)]
    for kind in ("data_worker", "model_worker"):
        if not getattr(config, kind):
            problems.append(f"the experiment has no {kind}: give at least one")
    problems += _stream_names(config)
    replicas = replicas_of(config)
    for model, workers in replicas.items():
        problems += _replicas(model, workers)
    for model in sorted({model for needs in dataflow.needs.values() for model in needs.models} - replicas.keys()):
        problems.append(f"the dataflow queries a model that no worker has: {unknown_name('model', model, replicas)}")
    problems += _batches(config, replicas)
    _raise(problems)


def check_scheduling(scheduling: ExperimentScheduling, config: Workers) -> None:
    """Raises ExperimentError if counts and resources do not fit the workers of ``config``."""
    problems = []
    for kind in KINDS:
        groups = scheduling.groups(kind)
        bad = [group.count for group in groups if type(group.count) is not int or group.count < 1]
        problems += [f"{kind}: the count of a group is a whole number from 1, not {count!r}" for count in bad]
        count, workers = sum(group.count for group in groups) if not bad else 0, len(getattr(config, kind))
        if not bad and count != workers:
            problems.append(f"{kind}: scheduling_setup has {count}, initial_setup {workers}: give both the same number")
        for group in groups:
            problems += _resources(kind, group.scheduling)
    if not problems:
        problems += _slots_of_replicas(scheduling, config)
    _raise(problems)


def check_registered(config: Workers, dataflow: Dataflow) -> None:
    """Raises ExperimentError for names that nothing is registered under, and for handles that an interface lacks.

    To be called after the project's modules were imported.
    """
    problems = []
    for index, data_worker in enumerate(config.data_worker):
        where = f"data_worker[{index}]"
        problems += _unregistered(where, DATASETS, data_worker.datasets)
        problems += _unregistered(where, DATALOADERS, [data_worker.dataloader])
    for model, workers in replicas_of(config).items():
        worker = workers[0]
        problems += _unregistered(model, MODELS, [worker.model])
        problems += _unregistered(model, BACKENDS, [worker.backend])
        problems += _unregistered(model, DATASETS, worker.eval_datasets or ())
        problems += _unregistered(model, DATALOADERS, [worker.eval_dataloader] if worker.eval_dataloader else ())
        missing = _unregistered(model, INTERFACES, [worker.interface])
        problems += missing or _missing_handles(model, worker, dataflow)
    _raise(problems)


def notes(scheduling: ExperimentScheduling, config: Workers, with_effect: Container[str] = ()) -> list[str]:
    """Returns sentences about what is accepted and has no effect, or another one than it had.

    ``with_effect``: resources that do have one where the experiment runs.
    """
    sentences = []
    given = [
        name
        for name in WITHOUT_EFFECT
        if name not in with_effect
        and any(_is_changed(name, kind, group.scheduling) for kind in KINDS for group in scheduling.groups(kind))
    ]
    given += ["controller_image"] if scheduling.controller_image else []
    if given:
        sentences.append(f"{', '.join(given)} of the scheduling have no effect: the pool and its agents decide")
    streams: list[Any] = [worker.stream for worker in config.data_worker]
    streams += [worker.stream for worker in config.model_worker]
    methods = {stream.serialization_method for stream in streams}
    pickled = sorted(method for method in methods if SAFE_METHODS[method] != method)
    if pickled:
        safe = sorted({SAFE_METHODS[method] for method in pickled})
        sentences.append(f"streams use {', '.join(safe)} instead of {', '.join(pickled)}: nothing is pickled")
    seeds = sorted({worker.seed for worker in config.data_worker})
    if len(seeds) > 1:
        sentences.append(
            f"the data workers have seeds {', '.join(map(str, seeds))}, so some items are read twice and others never; "
            "give all of them one seed"
        )
    called = {model for needs in config.master_worker[0].leveled_exec_funcs.needs.values() for model in needs.models}
    idle = [model for model in replicas_of(config) if model not in called]
    if idle:
        sentences.append(f"no function of the dataflow calls {', '.join(idle)}")
    return sentences


def replicas_of(config: Workers) -> dict[str, list[ModelWorker]]:
    """Returns the workers of each model, in the order of the configuration."""
    found: dict[str, list[ModelWorker]] = {}
    for worker in config.model_worker:
        found.setdefault(worker.model_name, []).append(worker)
    return found


def _numbers(config: Workers) -> Iterable[str]:
    epochs = config.total_train_epochs
    if type(epochs) is not int or epochs < 1:
        yield f"total_train_epochs is a whole number from 1, not {epochs!r}"
    for what in ("save", "eval"):
        for unit in ("epochs", "steps", "seconds"):
            value = getattr(config, f"{what}_frequency_{unit}")
            is_number = isinstance(value, int) or (unit == "seconds" and isinstance(value, float))
            if value is not None and (not is_number or isinstance(value, bool) or not value > 0):
                yield f"{what}_frequency_{unit} is a number above 0 or None, not {value!r}"


def _stream_names(config: Workers) -> Iterable[str]:
    users: dict[str, str] = {}
    for kind in ("data_worker", "model_worker"):
        for index, worker in enumerate(getattr(config, kind)):
            name, user = worker.stream.stream_name, f"{kind}[{index}]"
            if name in users:
                yield f"{users[name]} and {user} both have the stream {name!r}: each worker has one of its own"
            users[name] = user


def _replicas(model: str, workers: list[ModelWorker]) -> Iterable[str]:
    if not isinstance(model, str) or not MODEL_NAME.fullmatch(model):
        yield f"the model name {model!r} is not a small letter and up to 63 small letters, digits, '_' and '-'"
    if model in RESERVED:
        yield f"the model name {model!r} is that of another worker: choose another"
    for what in ("model", "interface", "backend"):
        if any(getattr(worker, what) != getattr(workers[0], what) for worker in workers):
            yield f"the workers of the model {model!r} have different {what}s: replicas are equal"


def _batches(config: Workers, replicas: dict[str, list[ModelWorker]]) -> Iterable[str]:
    sizes = []
    for worker in config.data_worker:
        loader: Any = worker.dataloader
        default = DEFAULT_BATCH_SIZE if loader.type_ == "default" else None
        sizes.append(loader.args.get("batch_size", default))
    for size in sizes:
        if size is not None and (type(size) is not int or size < 1):
            yield f"the batch_size of a dataloader is a whole number from 1, not {size!r}"
            return
    if not sizes or None in sizes:  # a loader of the user's own: seen at the first step
        return
    total = sum(sizes)
    for model, workers in replicas.items():
        if total % len(workers):
            yield (
                f"a batch of {total} rows ({len(sizes)} data workers) cannot be divided by the {len(workers)} workers "
                f"of the model {model!r}: change batch_size or the number of workers"
            )


def _resources(kind: str, scheduling: Scheduling) -> Iterable[str]:
    gpu = scheduling.gpu
    if type(gpu) is not int or gpu < 0:
        yield f"{kind}: gpu is a whole number from 0, not {gpu!r}"
    elif gpu and kind != "model_worker":
        yield f"{kind}: gpu={gpu}, but only model workers have slots: give 0"
    variables = scheduling.env_vars
    if not isinstance(variables, dict) or not all(
        isinstance(name, str) and isinstance(value, str) and name and "=" not in name and "\0" not in name + value
        for name, value in variables.items()
    ):
        yield f"{kind}: env_vars must map names, without = and NUL, to texts, not {variables!r}"


def _slots_of_replicas(scheduling: ExperimentScheduling, config: Workers) -> Iterable[str]:
    each = [group.scheduling for group in scheduling.groups("model_worker") for _ in range(group.count)]
    first: dict[str, Scheduling] = {}
    for worker, resources in zip(config.model_worker, each, strict=True):
        known = first.setdefault(worker.model_name, resources)
        if (known.gpu, known.env_vars) != (resources.gpu, resources.env_vars):
            yield f"the workers of the model {worker.model_name!r} differ in gpu or env_vars: replicas are equal"


def _unregistered(where: str, registry: Registry[Any], parts: Iterable[Any]) -> list[str]:
    problems = []
    for part in parts:
        try:
            registry.get(part.type_)
        except UnknownName as error:
            problems.append(f"{where}: {error}")
    return problems


def _missing_handles(model: str, worker: ModelWorker, dataflow: Dataflow) -> Iterable[str]:
    """Of an interface that is registered as a class, or a partial of one."""
    interface: Any = worker.interface
    maker: Any = INTERFACES.get(interface.type_)
    kind = getattr(maker, "func", maker)
    if not isinstance(kind, type):
        return
    for function, needs in dataflow.needs.items():
        for handle in sorted(handle for called, handle in needs.calls if called == model):
            if not _has(kind, handle):
                yield (
                    f"the function {function} calls {handle} of the model {model!r}, but its interface "
                    f"{interface.type_!r} ({kind.__name__}) has no such method"
                )


def _has(kind: type, handle: str) -> bool:
    """Returns True if a class below the base class ``ModelInterface``, which only raises, has the method."""
    owner = next((one for one in kind.__mro__ if handle in vars(one)), None)
    return owner is not None and not (owner.__name__ == "ModelInterface" and owner.__module__.endswith("task.model"))


def _is_changed(name: str, kind: str, scheduling: Scheduling) -> bool:
    """Returns True if a field without effect is not the default of this kind of worker."""
    default = getattr(type(scheduling), f"{kind}_default")()
    return bool(getattr(scheduling, name) != getattr(default, name))


def _raise(problems: Iterable[str]) -> None:
    found = list(problems)
    if found:
        raise ExperimentError(found)
