"""Configurations as YAML: what comes back, and documents that are refused without running anything."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.workflows.rlhf.experiment_parts import config, data_worker, reference, scheduling, train, workers

from determined_workflows.rlhf.task.config import (
    Dataset,
    Scheduling,
    WorkerInformation,
    dump_config_to_yaml,
    load_config_from_yaml,
)
from determined_workflows.rlhf.task.dataflow import Commands, MasterWorkerECS
from determined_workflows.rlhf.task.experiment_check import ExperimentError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def round_trip(given: object, file: Path) -> Any:
    dump_config_to_yaml(given, file)
    return load_config_from_yaml(file)


@pytest.mark.parametrize(
    "given",
    [
        scheduling(env_vars={"A": "1"}),
        data_worker(worker_info=WorkerInformation("e", "t", "data_worker", 0, 1)),
        Dataset("d", {"betas": (0.9, 0.95), "path": None, "text": "é: #", "list": [1, {"a": False}]}),
        [Scheduling(1, 0, 5), Scheduling(2, 1, 5)],
    ],
)
def test_a_configuration_comes_back_equal(given: object, file: Path) -> None:
    assert round_trip(given, file) == given


def test_classes_are_tags_that_people_can_read(file: Path) -> None:
    dump_config_to_yaml(Dataset("d", {"x": 1}), file)
    assert file.read_text() == "!Dataset\ntype_: d\nargs:\n  x: 1\n"


@pytest.mark.parametrize("is_built", [False, True])
def test_an_experiment_comes_back_with_its_dataflow(is_built: bool, file: Path) -> None:
    ecs = MasterWorkerECS(workers()).add_system(reference, after=train).add_system(train)
    found = round_trip(config(master_ecs=ecs.build() if is_built else ecs), file)
    assert found.model_worker == workers()
    assert found.master_worker[0].leveled_exec_funcs.levels == [["train"], ["reference"]]
    assert found.master_worker[0].leveled_exec_funcs.funcs["train"] is train


@pytest.mark.parametrize("value", [object(), os.getcwd, {1, object()}])
def test_a_value_that_yaml_cannot_hold_is_refused_and_writes_nothing(value: object, file: Path) -> None:
    with pytest.raises(TypeError, match="cannot be written as YAML: use numbers, texts, lists, mappings"):
        dump_config_to_yaml(Dataset("d", {"x": value}), file)
    assert not file.exists()


def test_a_function_inside_a_function_is_refused(file: Path) -> None:
    def inner(commands: Commands) -> None: ...

    with pytest.raises(TypeError, match="a function of a dataflow is at the top of a module"):
        dump_config_to_yaml(MasterWorkerECS([]).add_system(inner), file)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("!Datasets {type_: d}", "there is no class 'Datasets': did you mean 'Dataset'(.|\n)*line 1"),
        ("a: 1\nb: !Dataset {kind: d}", "unexpected keyword argument 'kind'(.|\n)*line 2"),
        ("!Dataset {type_: d", "cannot be read as a configuration"),
        ("!Dataset [d]", "expected a mapping"),
        ("!!python/object/apply:os.system [exit 1]", "could not determine a constructor"),
        ("!Dataset {type_: !!python/name:os.system ''}", "could not determine a constructor"),
        ("!Dataflow {functions: ['os:system'], edges: [], models: []}", "there is no function os:system"),
        ("!Dataflow {functions: ['not_imported:f'], edges: [], models: []}", "import not_imported first"),
        ("!Dataflow {functions: [], edges: []}", "functions, edges and models: 'models'(.|\n)*line 1"),
        ("!MasterWorkerECS {functions: 3, edges: [], models: []}", "functions, edges and models: 'int'"),
    ],
)
def test_a_document_that_is_no_configuration_is_refused(text: str, problem: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(ValueError, match=problem):
        load_config_from_yaml(file)


def test_checks_apply_to_a_configuration_that_is_loaded(file: Path) -> None:
    dump_config_to_yaml(config(), file)
    file.write_text(file.read_text().replace("total_train_epochs: 1", "total_train_epochs: 0"))
    with pytest.raises(ExperimentError, match="total_train_epochs is a whole number from 1"):
        load_config_from_yaml(file)
