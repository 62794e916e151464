"""Sweeps: the id in the command, and the size of a grid."""

from pathlib import Path

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import example, sweep


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        (
            "wandb agent --count 1 WANDB_USERNAME/PROJECT_NAME/SWEEP_ID",
            "ab",
            "wandb agent --count 1 WANDB_USERNAME/PROJECT_NAME/ab",
        ),
        ("wandb agent --count 1 me/project/old1234", "ab", "wandb agent --count 1 me/project/ab"),
        ("wandb agent --count 1 SWEEP_ID", "ab", "wandb agent --count 1 ab"),
        ("cd x && wandb agent me/p/SWEEP_ID", "ab", "cd x && wandb agent me/p/ab"),
        ("wandb agent --count 1 a/b/SWEEP_ID", "me/project/ab", "wandb agent --count 1 me/project/ab"),
    ],
)
def test_the_last_part_of_the_path_is_replaced(command: str, given: str, expected: str) -> None:
    assert sweep.replace_id(command, given) == expected


def test_the_placeholder_is_no_sweep() -> None:
    assert sweep.current_id("wandb agent --count 1 a/b/SWEEP_ID") is None
    assert sweep.current_id("wandb agent --count 1 a/b/ab12") == "ab12"


@pytest.mark.parametrize("command", ["python main.py", "wandb sync x"])
def test_a_command_without_an_agent_is_refused(command: str) -> None:
    with pytest.raises(ConfigError, match="wandb agent --count 1"):
        sweep.current_id(command)


@pytest.mark.parametrize("text", ["", "a b", "a/$(b)", "a//b"])
def test_an_id_with_other_characters_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not valid"):
        sweep.check_id(text)


@pytest.mark.parametrize(
    ("content", "runs"),
    [
        ({"method": "grid", "parameters": {"a": {"values": [1, 2]}, "b": {"value": 3}}}, 2),
        ({"method": "grid", "parameters": {"o": {"parameters": {"a": {"values": [1, 2, 3]}}}}}, 3),
        ({"method": "grid", "parameters": {"a": {"min": 0, "max": 1}}}, None),
        ({"method": "random", "parameters": {"a": {"values": [1, 2]}}}, None),
        ({"method": "bayes", "run_cap": 20, "parameters": {"a": {"min": 0, "max": 1}}}, 20),
        ({"method": "grid", "run_cap": 2, "parameters": {"a": {"values": [1, 2, 3]}}}, 2),
    ],
)
def test_the_runs_of_a_sweep_are_counted(content: dict[str, object], runs: int | None) -> None:
    assert sweep.count_runs(content) == runs


def test_the_example_has_four_runs_and_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = example.init(tmp_path) / sweep.FILE_NAME
    assert sweep.runs_of(path) == 4
    path.write_text("method: grid\nparameters: [\n")
    with pytest.raises(ConfigError, match=r"sweeper.yml:3:1: "):
        sweep.runs_of(path)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("wandb agent me/project/SWEEP_ID --count 5", "wandb agent me/project/zz99 --count 5"),
        ("wandb agent --count 1 me/project/ab12; echo done", "wandb agent --count 1 me/project/zz99; echo done"),
    ],
)
def test_the_sweep_is_replaced_wherever_the_options_of_the_agent_stand(command: str, expected: str) -> None:
    assert sweep.replace_id(command, "zz99") == expected
    assert sweep.current_id(expected) == "zz99"


@pytest.mark.parametrize("content", ["a: \x01", "a: 2020-13-45", "[" * 3000])
def test_a_file_that_is_not_yaml_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "sweeper.yml").write_text(content)
    with pytest.raises(ConfigError, match=r"sweeper\.yml"):
        sweep.read(tmp_path / "sweeper.yml")
