"""Fixtures: a Hydra project in the working folder, and `det hydra` in it."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import hydra_project

from determined_cli.main import main

Det = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    folder = hydra_project.write(tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def det(project: Path, det_here: Det) -> Det:
    """Returns a function that runs ``det hydra`` in the project."""
    return det_here


@pytest.fixture
def det_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Det:
    """Returns a function that runs ``det hydra`` in the working folder. It returns exit code, output and messages."""
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["hydra", *words])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run
