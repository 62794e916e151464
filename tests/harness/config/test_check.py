"""Accepted configurations: defaults, old and new dialect, and merging."""

import json
import time
from typing import Any

import pytest

from determined.config import ExperimentConfig, check, yaml_source
from determined.config.checking import MAX_ERRORS

MASTER = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints", "save_trial_best": 3}}
SMALL = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"


def accepted(text: str, *defaults: dict[str, Any]) -> ExperimentConfig:
    checked = check(text, defaults=[*defaults, MASTER], seed=1, now=1000.9)
    assert checked.config is not None, checked.render()
    return checked.config


def test_a_small_configuration_gets_every_default() -> None:
    config = accepted(SMALL).to_json()
    assert config["max_restarts"] == 5
    assert config["scheduling_unit"] == 100
    assert config["min_validation_period"] == {"batches": 0}
    assert config["reproducibility"] == {"experiment_seed": 1000}
    assert config["checkpoint_storage"]["save_trial_best"] == 3
    assert config["checkpoint_storage"]["host_path"] == "/checkpoints"
    assert config["resources"]["slots_per_trial"] == 1
    assert [policy["name"] for policy in config["log_policies"]] == ["CUDA OOM", "ECC Error"]
    assert config["environment"]["harness"] == "auto"
    assert config["name"] == accepted(SMALL).name
    assert config["name"].startswith("Experiment (")
    json.dumps(config, allow_nan=False)


def test_a_completed_configuration_is_accepted_without_changes() -> None:
    first = accepted(
        SMALL + "hyperparameters: {lr: 1e-3, n: {type: int, minval: 1, maxval: 3}, g: {a: [1, null]}}"
    ).to_json()
    assert accepted(json.dumps(first)).to_json() == first


def test_a_configuration_of_2022_is_accepted() -> None:
    config = accepted(
        """
entrypoint: model_def:Trial
searcher: {name: single, metric: loss, max_length: {epochs: 2}}
records_per_epoch: 100
min_validation_period: {epochs: 1}
min_checkpoint_period: {records: 50}
scheduling_unit: 10
optimizations: {aggregation_frequency: 2, mixed_precision: O1}
environment: {image: {cpu: a, gpu: b}}
labels: {x: true, y: false}
"""
    ).to_json()
    assert config["searcher"]["max_length"] == {"epochs": 2}
    assert config["min_checkpoint_period"] == {"records": 50}
    assert config["environment"]["image"] == {"cpu": "a", "cuda": "b", "rocm": None}
    assert config["labels"] == ["x"]


def test_a_length_without_unit_and_an_argv_entrypoint_are_accepted() -> None:
    config = accepted(
        "entrypoint: [python3, train.py, '--', é]\nsearcher: {name: random, metric: m, max_trials: 3, max_length: 7}"
    )
    assert config.to_json()["searcher"]["max_length"] == 7
    assert config.to_json()["entrypoint"] == ["python3", "train.py", "--", "é"]


def test_a_null_field_gets_its_default() -> None:
    assert accepted(SMALL + "max_restarts: null\nresources: {slots_per_trial: null}").max_restarts == 5


@pytest.mark.parametrize(
    ("own", "below", "path", "expected"),
    [
        ("max_restarts: 1", {"max_restarts": 9}, "max_restarts", 1),
        ("labels: [a]", {"labels": ["b", "a"]}, "labels", ["a", "b"]),
        (
            "environment: {environment_variables: [A=own]}",
            {"environment": {"environment_variables": {"cpu": ["A=low"]}}},
            "environment.environment_variables.cpu",
            ["A=low", "A=own"],
        ),
        (
            "bind_mounts: [{host_path: /a, container_path: x}]",
            {"bind_mounts": [{"host_path": "/b", "container_path": "x"}, {"host_path": "/c", "container_path": "y"}]},
            "bind_mounts.1.host_path",
            "/c",
        ),
        (
            "hyperparameters: {n: {a: 1}, lr: {type: int, minval: 0, maxval: 2}}",
            {"hyperparameters": {"n": {"b": 2}, "lr": {"type": "const", "val": 1}}},
            "hyperparameters.n.b.val",
            2,
        ),
        ("checkpoint_storage: {type: directory, container_path: /c}", {}, "checkpoint_storage.save_trial_best", 3),
        ("checkpoint_storage: {save_trial_latest: 4}", {}, "checkpoint_storage.host_path", "/checkpoints"),
        ("slurm: {sbatch_args: [b]}", {"slurm": {"sbatch_args": ["a"]}}, "slurm.sbatch_args", ["a", "b"]),
        ("log_policies: [{name: CUDA OOM}]", {}, "log_policies.0.pattern", None),
    ],
)
def test_a_configuration_is_merged_over_its_defaults(
    own: str, below: dict[str, Any], path: str, expected: object
) -> None:
    value: Any = accepted(SMALL + own, below).to_json()
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    assert value == expected


def test_a_storage_of_another_type_takes_no_field_of_the_default_storage() -> None:
    config = accepted(SMALL + "checkpoint_storage: {type: directory, container_path: /c}")
    assert "host_path" not in config.to_json()["checkpoint_storage"]


def test_an_error_in_the_defaults_is_marked_as_such() -> None:
    checked = check(SMALL, defaults=[{"max_restarts": -1}, MASTER])
    assert not checked.ok
    assert "from the defaults" in checked.diagnostics[0].message


@pytest.mark.parametrize("period", ["{batches: null}", "{}"])
def test_a_period_without_a_length_is_an_error_of_the_text_whatever_the_defaults_have(period: str) -> None:
    below = {"min_validation_period": {"records": 7}}
    checked = check(f"{SMALL}min_validation_period: {period}\n", defaults=[below, MASTER])
    assert [(each.code, each.line, each.message) for each in checked.diagnostics] == [
        ("E202", 3, '"min_validation_period": a length needs one of batches, records, epochs')
    ]


def test_an_error_in_a_merged_value_points_at_the_line_of_the_value() -> None:
    checked = check("data: {x: &x {slots_per_trial: no}}\nresources:\n  <<: *x\n" + SMALL, defaults=[MASTER])
    assert [(diagnostic.line, diagnostic.code) for diagnostic in checked.diagnostics] == [(1, "E201")]


def test_an_accepted_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        accepted(SMALL).max_restarts = 2


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("90s", 90), ("1.5h", 5400), ("30", 30), ("null", None)])
def test_launch_settings_are_parsed_and_written_out(text: str, seconds: float | None) -> None:
    config = accepted(SMALL + f"launch: {{hang_timeout: {text}}}")
    assert config.launch.hang_timeout == seconds
    assert accepted(json.dumps(config.to_json())).launch == config.launch
    assert accepted(SMALL, {"launch": {"hang_timeout": 5}}).launch.hang_timeout == 5


def test_a_grid_that_is_too_large_is_refused_with_its_size_and_a_hint() -> None:
    axis = "{type: int, minval: 0, maxval: 299, count: 300}"
    text = f"""entrypoint: a.py
checkpoint_storage: {{type: shared_fs, host_path: /c}}
searcher: {{name: grid, metric: loss}}
hyperparameters:
  a: {axis}
  b: {{deep: {axis}}}
  c: {axis}
"""
    (diagnostic,) = check(text).diagnostics
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == ("E310", 4, 1)
    assert "27,000,000 points" in diagnostic.message
    assert diagnostic.hint is not None
    assert "count" in diagnostic.hint
    assert check(text.replace("grid, ", "random, max_trials: 3, ")).ok
    assert check(text.replace("300", "46")).ok


def test_the_check_stops_after_the_maximum_of_errors() -> None:
    diagnostics = check("".join(f"unknown{number}: 1\n" for number in range(5000))).diagnostics
    assert len(diagnostics) == MAX_ERRORS + 1
    assert any("there may be more" in diagnostic.message for diagnostic in diagnostics)


@pytest.mark.parametrize("section", ["bind_mounts: [{host_path: /a, container_path: b, propagation: foo}]"])
def test_a_propagation_that_no_engine_knows_is_refused(section: str) -> None:
    text = f"entrypoint: x\nsearcher: {{name: single, metric: m}}\n{section}\n"
    checked = check(text, defaults=[{"checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}])
    assert [(each.line, each.severity) for each in checked.diagnostics] == [(3, "error")]


def test_nulls_in_the_items_of_a_list_mean_unset() -> None:
    mount = "{host_path: /a, container_path: b, read_only: null}"
    text = f"entrypoint: x\nsearcher: {{name: single, metric: m}}\nbind_mounts: [{mount}]\n"
    checked = check(text, defaults=[{"checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}])
    assert checked.ok, checked.diagnostics


def test_a_trial_that_no_database_can_number_is_refused() -> None:
    text = "entrypoint: x\nsearcher: {name: single, metric: m, source_trial_id: 99999999999999999999}\n"
    checked = check(text, defaults=[{"checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}])
    assert [each.path for each in checked.diagnostics if each.severity == "error"] == ["searcher.source_trial_id"]


def test_a_merge_of_very_many_keys_is_read_in_time_that_grows_with_them():
    base = ", ".join(f"k{number}: {number}" for number in range(16_000))
    began = time.process_time()
    document = yaml_source.read(f"data:\n  a: &a {{{base}}}\n  b: {{<<: *a, k1: x}}\n")
    assert time.process_time() - began < 3  # a search for each key in all takes half a minute
    assert document.data["data"]["b"] == {**document.data["data"]["a"], "k1": "x"}
    assert document.places["data", "b", "k2"] == document.places["data", "a", "k2"]
