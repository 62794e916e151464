"""Fixtures: a folder with a file of parameters, in which ``det runner`` runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.workflows.runner.runner_process import Runner

from determined_cli.main import main

GRID = """\
template:
  train: >
    echo {data} {lr}
      --norm {norm}
  test: test {norm} != bad
default: {data: iwslt14, lr: 0.1}
resource: [0, 1]
---
norm: [new, bad]
lr: [0.1, 0.05]
"""

Start = Callable[..., Runner]
Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs ``det runner run`` on a grid. It returns the exit code and the printed lines."""

    def run_grid(text: str, *flags: str) -> tuple[int, list[str]]:
        (folder / "params.yaml").write_text(text, encoding="utf-8")
        code = main(["runner", "run", *flags])
        captured = capfd.readouterr()
        return code, (captured.out + captured.err).splitlines()

    return run_grid


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Yields a function that starts runs as processes. They are killed at the end of the test."""
    started: list[Runner] = []

    def start_one(*flags: str) -> Runner:
        started.append(Runner(folder, *flags))
        return started[-1]

    yield start_one
    for runner in started:
        runner.kill()
