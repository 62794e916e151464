"""``python3 -m apps.main`` takes the verbs and flags of 2023 and passes them on to ``det rlhf``."""

import os
from pathlib import Path

import pytest

from determined_workflows.rlhf import program

pytestmark = pytest.mark.budget(20, "the first project imports torch")


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Returns the words behind ``det`` of each call that replaces the process."""
    calls: list[list[str]] = []

    def replace_process(_: str, words: list[str]) -> None:
        calls.append(words[3:])
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", replace_process)
    return calls


def test_start_passes_experiment_trial_and_mode_on(passed_on: list[list[str]]) -> None:
    with pytest.raises(SystemExit, match="0"):
        program.main(["start", "-e", "line", "-f", "first", "--mode", "local"])
    assert passed_on[0][:6] == ["rlhf", "run", "line", "first", "--on", "local"]


def test_the_default_mode_is_slurm_with_the_documents_partition(passed_on: list[list[str]]) -> None:
    with pytest.raises(SystemExit, match="0"):
        program.main(["start", "-e", "line", "-f", "first"])
    words = " ".join(passed_on[0])
    assert "--on slurm" in words
    assert "--partition dev" in words


def test_options_of_the_time_are_passed_on_or_named(
    passed_on: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--wandb_mode", "offline", "--LOGLEVEL", "DEBUG", "--image_name", "x:1", "--ignore_worker_error"]
    with pytest.raises(SystemExit, match="0"):
        program.main(["start", "--experiment_name", "line", "--trial_name", "a", "--mode", "det", "--debug", *flags])
    words = " ".join(passed_on[0])
    assert "--wandb-mode offline" in words
    assert "--log-level DEBUG" in words
    assert "--image x:1" in words
    warnings = capsys.readouterr().err
    assert "--debug has no effect" in warnings
    assert "--ignore_worker_error has no effect" in warnings


@pytest.mark.parametrize("mode", ["ray", "local_ray"])
def test_ray_is_refused_with_what_to_use(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        program.main(["start", "-e", "line", "--mode", mode])
    assert "use --mode local" in capsys.readouterr().err


def test_a_start_without_an_experiment_says_which_flag_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        program.main(["start", "-f", "first"])
    assert "-e/--experiment_name" in capsys.readouterr().err


def test_stop_passes_experiment_and_trial_on(passed_on: list[list[str]]) -> None:
    with pytest.raises(SystemExit, match="0"):
        program.main(["stop", "-e", "line", "-f", "first", "--mode", "local"])
    assert passed_on[0] == ["rlhf", "stop", "line", "first"]


def test_find_config_prints_the_names_that_match(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project_folder)
    assert program.main(["find_config", "-r", "li"]) == 0
    assert capsys.readouterr().out == "line\n"


def test_find_config_outside_a_project_is_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert program.main(["find_config"]) == 1
    assert "no folder experiments" in capsys.readouterr().err
