"""The configuration of a command: defaults, errors and warnings."""

import pytest

from determined.config.command import CommandConfig, check_command
from determined.config.support import WARNED_OF_COMMANDS

LS = {"entrypoint": ["ls", "-l"]}


def test_a_command_configuration_gets_every_default():
    config = check_command(LS, seed=1).config
    assert config is not None
    assert config["entrypoint"] == ["ls", "-l"]
    assert (config["resources"]["slots"], config["resources"]["resource_pool"], config["bind_mounts"]) == (1, "", [])
    assert config["description"].startswith("Command (")
    assert check_command(LS, seed=1).config == config
    assert check_command(LS, seed=2).config != config


@pytest.mark.parametrize("config", [{}, {"entrypoint": None}])
def test_a_command_without_an_entrypoint_does_nothing_and_warns(config):
    checked = check_command(config)
    assert checked.config is not None
    assert checked.config["entrypoint"] == ["true"]
    assert [warning.message for warning in checked.warnings] == ["there is no entrypoint, so the command does nothing"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"entrypoint": []}, "the entrypoint is empty"),
        ({"entrypoint": ["ls", 1]}, "expected a text"),
        ({**LS, "resources": {"slots": "1"}}, "expected a whole number"),
        ({**LS, "resources": {"slots": -1}}, "at least 0"),
        ({**LS, "resources": {"priority": 100}}, "at most 99"),
        ({**LS, "resources": {"slots_per_trial": 1}}, 'unknown field "slots_per_trial" in resources'),
        ({**LS, "searcher": {"name": "single"}}, 'unknown field "searcher"'),
        ({**LS, "environment": {"environment_variables": ["=x"]}}, "is not NAME=VALUE"),
        ({**LS, "bind_mounts": [{"host_path": "relative", "container_path": "x"}]}, "host_path"),
        ({**LS, "description": "x" * 1001}, "description"),
        (
            {**LS, "environment": {"pod_spec": {"spec": {"hostNetwork": True}}}},
            "without Kubernetes use environment.image",
        ),
    ],
)
def test_each_invalid_field_of_a_command_is_an_error(config, text):
    checked = check_command(config)
    assert checked.config is None
    assert text in " ".join(f"{error.message} {error.hint}" for error in checked.errors)


def test_null_fields_of_a_command_are_accepted():
    assert check_command({**LS, "description": None, "resources": None, "work_dir": None}).config is not None


def test_fields_without_effect_on_a_command_are_warnings():
    assert check_command(LS).warnings == ()
    config = {**LS, "work_dir": "/x", "idle_timeout": "10m", "resources": {"shm_size": "1g", "weight": 2}}
    assert sorted(".".join(map(str, warning.path)) for warning in check_command(config).warnings) == [
        "idle_timeout",
        "resources.shm_size",
        "work_dir",
    ]


def test_every_warning_of_commands_names_an_existing_field():
    for row in WARNED_OF_COMMANDS:
        assert row.path[0] in CommandConfig.model_fields


def test_what_only_an_experiment_or_a_pool_has_is_warned_about_in_a_command():
    checked = check_command({**LS, "slurm": {"gpu_type": "a100"}, "resources": {"is_single_node": False}})
    assert checked.config is not None
    assert [warning.message for warning in checked.warnings] == [
        '"slurm.gpu_type" has no effect here: options of Slurm belong to the pool',
        '"resources.is_single_node" has no effect here',
    ]
