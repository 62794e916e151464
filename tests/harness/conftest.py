"""Fixtures of the tests of the harness."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_master import FakeMaster, serving, task_environment


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeMaster]:
    """Yields a small master on this machine. The test process has the environment of one of its tasks."""
    with serving() as server:
        for name, value in task_environment(server, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield server
