"""The experiment that ``det run`` composes of a command."""

from typing import Any

import pytest
import yaml

from determined.config import check
from determined.errors import ConfigError
from determined_workflows import command_run

STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/"}}


def composed(*command: str, **options: Any) -> dict[str, Any]:
    text, warnings = command_run.prepare(command, **options)
    assert warnings == ""
    return dict(yaml.safe_load(text))


def test_a_command_becomes_an_experiment_with_one_trial_and_no_restart() -> None:
    assert composed("python3", "train.py", "--note", "it's 1 > 0") == {
        "name": "train.py",
        "entrypoint": ["python3", "train.py", "--note", "it's 1 > 0"],
        "searcher": {"name": "single", "metric": "validation_loss"},
        "max_restarts": 0,
    }


@pytest.mark.parametrize(
    "word", ["a\n\tb", "\x1b[31m", "\x7f", "\x85 \u2028", "\xa0", "é 😀", "# no: {comment}", "\\n", "null", ""]
)
def test_each_word_is_the_same_after_the_configuration_is_read(word: str) -> None:
    text, _ = command_run.prepare(["echo", word])
    assert yaml.safe_load(text)["entrypoint"] == ["echo", word]
    checked = check(text, defaults=[STORAGE])
    assert checked.config is not None
    assert checked.config.entrypoint == ["echo", word]


def test_the_composed_configuration_is_valid_without_a_warning() -> None:
    text, _ = command_run.prepare(["python3", "train.py"], slots=2, pool="default")
    checked = check(text, defaults=[STORAGE], has_containers=True)
    assert (checked.ok, checked.diagnostics) == (True, ())


def test_slots_pool_and_outputs_of_the_command_line_are_in_the_configuration() -> None:
    config = composed("true", slots=2, pool="gpus", outputs=["plots", "models"])
    assert config["resources"] == {"slots_per_trial": 2, "resource_pool": "gpus"}
    assert config["outputs"] == ["plots", "models"]


def test_a_setting_changes_the_composed_configuration() -> None:
    config = composed("true", slots=2, changes=["name=probe", "max_restarts=3", "resources.priority=5"])
    assert (config["name"], config["max_restarts"]) == ("probe", 3)
    assert config["resources"] == {"slots_per_trial": 2, "priority": 5}


@pytest.mark.parametrize(
    ("change", "options", "told"),
    [
        ("entrypoint=ls", {}, "entrypoint follows from the command after --"),
        ("resources.slots_per_trial=1", {"slots": 2}, "resources.slots_per_trial follows from --slots"),
        ("resources.resource_pool=a", {"pool": "b"}, "resources.resource_pool follows from --pool"),
        ("outputs=a", {"outputs": ["b"]}, "outputs follows from --outputs"),
    ],
)
def test_a_setting_that_the_command_line_has_too_is_refused(change: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        command_run.prepare(["true"], changes=[change], **options)


def test_an_unknown_setting_is_an_error_at_its_place() -> None:
    with pytest.raises(ConfigError, match=r"run\.yaml:.*max_restart\b"):
        command_run.prepare(["true"], changes=["max_restart=3"])


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/bin/env", "true"], "env"),
        (["python3.11", "-u", "-W", "ignore", "src/train.py"], "train.py"),
        (["python", "-m", "app.train", "x.py"], "app.train"),
        (["python", "-c", "print(1)"], "python"),
        (["python"], "python"),
        (["/"], "/"),
        (["x" * 300], "x" * 100),
    ],
)
def test_the_name_is_the_program_or_what_python_runs(command: list[str], name: str) -> None:
    assert command_run.name_of(command) == name


@pytest.mark.parametrize("command", [[], [""], [" ", "a"]])
def test_a_command_without_a_program_is_refused(command: list[str]) -> None:
    with pytest.raises(ConfigError, match="the command has no program"):
        command_run.prepare(command)
