"""Checks of an experiment when it is built: each fault is named with what to do, before anything runs."""

import functools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from tests.workflows.rlhf.experiment_parts import (
    config,
    data_worker,
    model_worker,
    reference,
    scheduling,
    train,
    workers,
)

from determined_workflows.rlhf.task import experiment_check, registry
from determined_workflows.rlhf.task.config import (
    ALL_EXPERIMENT_CLASSES,
    DataLoader,
    Experiment,
    ExperimentScheduling,
    ModelBackend,
    RequestReplyStream,
    Scheduling,
    TasksGroup,
    make_experiment,
    register_experiment,
)
from determined_workflows.rlhf.task.dataflow import MasterWorkerECS
from determined_workflows.rlhf.task.experiment_check import ExperimentError, check_names, check_scheduling
from determined_workflows.rlhf.task.prepare import prepare
from determined_workflows.rlhf.task.registry import Registry, UnknownName

STREAMS = [data_worker(0, stream="same"), data_worker(1, stream="same")]


def test_a_good_configuration_passes_and_has_a_master_worker() -> None:
    good = config()
    check_scheduling(scheduling(), good)
    master = good.master_worker[0]
    assert [stream.stream_name for stream in master.data_stream] == ["data0"]
    assert {model: len(streams) for model, streams in master.model_streams.items()} == {"actor": 2, "ref": 1}
    assert (master.save_frequency_seconds, master.eval_frequency_steps) == (3600, None)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"total_train_epochs": 0}, "total_train_epochs is a whole number from 1, not 0"),
        ({"total_train_epochs": 1.5}, "total_train_epochs is a whole number from 1, not 1.5"),
        ({"save_frequency_steps": 0}, "save_frequency_steps is a number above 0 or None, not 0"),
        ({"eval_frequency_epochs": 0.5}, "eval_frequency_epochs is a number above 0 or None, not 0.5"),
        ({"save_frequency_seconds": math.nan}, "save_frequency_seconds is a number above 0 or None, not nan"),
        ({"save_frequency_seconds": True}, "save_frequency_seconds is a number above 0 or None, not True"),
        ({"data_worker": []}, "the experiment has no data_worker: give at least one"),
        ({"data_worker": STREAMS}, r"data_worker\[0\] and data_worker\[1\] both have the stream 'same'"),
        ({"model_worker": workers(3)}, "a batch of 8 rows .* divided by the 3 workers of the model 'actor'"),
        (
            {"data_worker": [data_worker(0), data_worker(1, dataloader=DataLoader(args={"batch_size": 7}))]},
            r"a batch of 15 rows \(2 data workers\) cannot be divided by the 2 workers",
        ),
        (
            {"data_worker": [data_worker(dataloader=DataLoader(args={"batch_size": -2}))]},
            "batch_size of a dataloader is a whole number from 1, not -2",
        ),
        (
            {"model_worker": [*workers(1), model_worker("actor", 9, backend="other")]},
            "the workers of the model 'actor' have different backends: replicas are equal",
        ),
    ],
)
def test_a_fault_of_the_configuration_is_named(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ExperimentError, match=text):
        config(**changes)


@pytest.mark.parametrize("name", ["Actor", "", "a" * 65, "a b", "9a", "data_worker"])
def test_a_model_name_that_is_no_name_of_a_role_is_refused(name: str) -> None:
    with pytest.raises(ExperimentError, match="the model name"):
        config(model_worker=[*workers(), model_worker(name, 9)])


def test_every_fault_is_listed_at_once() -> None:
    with pytest.raises(ExperimentError) as caught:
        config(total_train_epochs=-1, save_frequency_steps=-1, data_worker=[])
    assert len(caught.value.problems) == 3


def test_a_model_without_workers_is_refused_with_the_nearest() -> None:
    ecs = MasterWorkerECS(workers()).add_systems([train, reference])
    with pytest.raises(ExperimentError, match="there is no model 'ref': known: actor"):
        config(model_worker=workers(2, 0), master_ecs=ecs)


def test_a_dataloader_of_the_user_s_own_is_not_judged() -> None:
    config(data_worker=[data_worker(dataloader="packed")], model_worker=workers(3))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"data_worker": "one"}, "a list is needed, not 'one'"),
        ({"data_worker": ["one"]}, "a DataWorker is needed, not 'one'"),
        ({"model_worker": [data_worker()]}, "a ModelWorker is needed, not DataWorker"),
        ({"master_ecs": [train]}, "master_ecs is a MasterWorkerECS, built or not"),
    ],
)
def test_parts_of_another_type_are_refused(values: dict[str, Any], text: str) -> None:
    values.setdefault("master_ecs", MasterWorkerECS(workers()).add_systems([train, reference]))
    with pytest.raises(TypeError, match=text):
        config(**{"model_worker": workers(), **values})


def test_a_model_worker_with_a_number_as_its_backend_is_refused() -> None:
    with pytest.raises(TypeError, match="a ModelBackend is needed, not 3"):
        model_worker("actor", 0, backend=3)


def test_a_text_in_place_of_a_part_is_the_name_of_the_part() -> None:
    worker = model_worker("actor", 0, backend="ds_train", eval_datasets=["valid"])
    assert worker.backend == ModelBackend("ds_train")
    assert worker.eval_dataloader == DataLoader("default_eval")
    assert worker.stream == RequestReplyStream("actor0", "raw_bytes")


@pytest.mark.parametrize(
    ("name", "method", "text"),
    [("", "raw_bytes", "a stream has a name"), ("s", "raw-bytes", "stream 's': .* did you mean 'raw_bytes'")],
)
def test_a_stream_is_checked(name: str, method: str, text: str) -> None:
    with pytest.raises(ExperimentError, match=text):
        RequestReplyStream(name, method)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (scheduling(data=2), "data_worker: scheduling_setup has 2, initial_setup 1: give both the same number"),
        (scheduling(model=(2,)), "model_worker: scheduling_setup has 2, initial_setup 3"),
        (scheduling(master=2), "master_worker: scheduling_setup has 2, initial_setup 1"),
        (scheduling(model=(2, 0)), "model_worker: the count of a group is a whole number from 1, not 0"),
        (scheduling(model=(2, 1.0)), "not 1.0"),
        (scheduling(gpu=-1), "model_worker: gpu is a whole number from 0, not -1"),
        (scheduling(gpu=0.5), "model_worker: gpu is a whole number from 0, not 0.5"),
        (scheduling(env_vars={"A": 1}), "env_vars must map names, without = and NUL, to texts"),
        (scheduling(env_vars={"A=B": "1"}), "env_vars must map names, without = and NUL, to texts"),
    ],
)
def test_a_scheduling_that_does_not_fit_is_refused(given: ExperimentScheduling, text: str) -> None:
    with pytest.raises(ExperimentError, match=text):
        check_scheduling(given, config())


def test_only_model_workers_have_slots() -> None:
    given = scheduling()
    given.data_worker = [TasksGroup(1, Scheduling.data_worker_default(gpu=1))]
    with pytest.raises(ExperimentError, match="data_worker: gpu=1, but only model workers have slots: give 0"):
        check_scheduling(given, config())


def test_replicas_with_different_slots_are_refused() -> None:
    given = scheduling(model=(1, 1, 1))
    given.groups("model_worker")[0].scheduling.gpu = 2
    with pytest.raises(ExperimentError, match="workers of the model 'actor' differ in gpu or env_vars"):
        check_scheduling(given, config())


@pytest.mark.parametrize(
    ("experiment", "trial", "text"),
    [
        ("my_ppo", "t", "the experiment name 'my_ppo' has a '_': use '-', as 'my-ppo'"),
        ("ppo", "my_trial", "the trial name 'my_trial' has a '_'"),
        ("ppo", "", "the trial name '' is not 1 to 64"),
        ("ppo", "../up", "is not 1 to 64 letters, digits, '-' and '.'"),
        ("ppo", "x" * 65, "is not 1 to 64"),
    ],
)
def test_names_that_cannot_be_used_are_refused(experiment: str, trial: str, text: str) -> None:
    with pytest.raises(ExperimentError, match=text):
        check_names(experiment, trial)


def test_notes_name_settings_without_effect_different_seeds_and_models_that_are_never_called() -> None:
    given = scheduling(container_image="image", exclude="node-3")
    given.controller_image = "image"
    data = [data_worker(0, seed=1), data_worker(1, seed=2)]
    models = workers()
    found = experiment_check.notes(
        given, config(data_worker=data, model_worker=models, master_ecs=MasterWorkerECS(models).add_system(train))
    )
    assert found == [
        "exclude, container_image, controller_image of the scheduling have no effect: the pool and its agents decide",
        "the data workers have seeds 1, 2, so some items are read twice and others never; give all of them one seed",
        "no function of the dataflow calls ref",
    ]


class Interface:
    def train_step(self, model: object, data: object) -> None: ...


class Small(Experiment):
    def __init__(self, interface: str = "trains") -> None:
        self.interface = interface

    def scheduling_setup(self) -> ExperimentScheduling:
        return scheduling(model=(1,))

    def initial_setup(self) -> Any:
        models = [model_worker("actor", 0, interface=self.interface)]
        return config(model_worker=models, master_ecs=MasterWorkerECS(models).add_system(train))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registries with what ``Small`` uses, and nothing else."""
    for known, names in (
        (registry.DATASETS, {"d": object}),
        (registry.DATALOADERS, {"default": object}),
        (registry.MODELS, {"m": object}),
        (registry.BACKENDS, {"b": object}),
        (registry.INTERFACES, {"trains": functools.partial(Interface), "scores": object}),
    ):
        monkeypatch.setattr(known, "makers", dict(names))
    before = dict(ALL_EXPERIMENT_CLASSES)
    ALL_EXPERIMENT_CLASSES.clear()
    register_experiment("small", Small)
    register_experiment("small-scores", functools.partial(Small, interface="scores"))
    yield
    ALL_EXPERIMENT_CLASSES.clear()
    ALL_EXPERIMENT_CLASSES.update(before)


@pytest.mark.usefixtures("registered")
def test_an_experiment_is_prepared_with_its_worker_information() -> None:
    prepared = prepare("small", "t-1")
    assert prepared.config.model_worker[0].worker_info is not None
    assert prepared.config.model_worker[0].worker_info.trial_name == "t-1"
    assert prepared.notes() == []


@pytest.mark.usefixtures("registered")
def test_an_unknown_experiment_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="there is no experiment 'smal': did you mean 'small'"):
        prepare("smal", "t")


@pytest.mark.usefixtures("registered")
def test_an_interface_without_a_called_method_is_refused() -> None:
    with pytest.raises(
        ExperimentError, match=r"train calls train_step of the model 'actor', but its interface 'scores'"
    ):
        prepare("small-scores", "t")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("known", ["DATASETS", "DATALOADERS", "MODELS", "INTERFACES", "BACKENDS"])
def test_a_part_that_nothing_is_registered_under_is_refused(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    empty: Registry[Any] = getattr(registry, known)
    monkeypatch.setattr(empty, "makers", {})
    with pytest.raises(
        ExperimentError, match=rf"there is no {empty.kind} '.*': none is known; add it by register_{empty.kind}"
    ):
        prepare("small", "t")


@pytest.mark.usefixtures("registered")
def test_a_method_that_returns_something_else_is_named() -> None:
    class Nothing(Small):
        def initial_setup(self) -> Any:
            return None

    register_experiment("nothing", Nothing)
    with pytest.raises(
        ExperimentError, match="initial_setup of the experiment 'nothing' returns no ExperimentConfig: None"
    ):
        prepare("nothing", "t")


@pytest.mark.usefixtures("registered")
def test_a_class_that_is_no_experiment_is_named() -> None:
    register_experiment("dict", dict)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the experiment 'dict' is a dict without a method scheduling_setup"):
        make_experiment("dict")


@pytest.mark.usefixtures("registered")
def test_two_makers_of_one_name_are_refused_and_a_reload_is_not() -> None:
    register_experiment("small", Small)
    with pytest.raises(ValueError, match="two experiments are registered under 'small'"):
        register_experiment("small", Experiment)
    with pytest.raises(ValueError, match="neither a class nor a function"):
        register_experiment("three", 3)  # type: ignore[arg-type]
