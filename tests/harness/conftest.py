"""Fixtures of the tests of the harness."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_master import FakeMaster, serving, task_environment

# The first optimizer of a test worker would otherwise load the compiler, which takes seconds.
importlib.import_module("tests.support.idle_compiler.sitecustomize")


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeMaster]:
    """Yields a small master on this machine. The test process has the environment of one of its tasks."""
    with serving() as server:
        for name, value in task_environment(server, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield server
