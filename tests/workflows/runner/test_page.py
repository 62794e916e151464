"""The page about the grid runner, followed as written, and the examples in docstrings."""

import doctest
import importlib
import os
import shlex
import sys
from pathlib import Path

import pytest
from tests.support.document_runner import follow

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "grid-runner.md"


def test_the_page_about_the_grid_runner_works_as_written(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("det", "-m determined_cli"), ("python3", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    (tmp_path / "work").mkdir()
    environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    assert follow(PAGE, tmp_path / "work", environ)


@pytest.mark.parametrize("name", ["console", "examine", "substitution", "task_name"])
def test_the_docstring_examples_of_runner_modules_are_correct(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(f"determined_workflows.runner.{name}"))
    assert results.attempted
    assert not results.failed
