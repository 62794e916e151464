"""What several folders of tests/harness share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_master import FakeMaster, serving, task_environment


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeMaster]:
    """A small master on this machine. The process of the test has the environment of one of its tasks."""
    with serving() as server:
        for name, value in task_environment(server, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield server
