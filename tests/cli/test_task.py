"""``det task``: the list of running tasks of every kind, and killing a task."""

from typing import Any

import pytest
from tests.support.fake_master import FakeMaster, serving

from determined_cli.main import main

SUMMARY = {
    "b.1": {
        "task_id": "b",
        "allocation_id": "b.1",
        "name": "builds the environment 0123456789abcdef of requirements.txt on one",
        "registered_time": "2026-11-24T10:00:01Z",
        "resource_pool": "default",
        "slots_needed": 0,
        "resources": [{"agent_devices": {"one": {"devices": []}}}],
    },
    "a.1": {
        "task_id": "a",
        "allocation_id": "a.1",
        "name": "Trial 1 (Experiment 1)",
        "registered_time": "2026-11-24T10:00:00Z",
        "resource_pool": "default",
        "slots_needed": 2,
        "resources": [],
    },
}


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Any:
    with serving() as server:
        monkeypatch.setenv("DET_MASTER", server.url)
        monkeypatch.setenv("DET_USER_TOKEN", "secret")
        yield server


def test_tasks_are_listed_oldest_first(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    master.on("GET", "/tasks", (200, SUMMARY))
    assert main(["task", "list", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Task ID,Name,Slots,Resource Pool,Registered,Agents"
    assert [line.split(",")[0] for line in lines[1:]] == ["a", "b"]
    assert lines[2].endswith(",one")


def test_task_kill_sends_the_request(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    master.on("POST", "/kill", (200, {}))
    assert main(["task", "kill", "b"]) == 0
    assert [path for method, path, *_rest in master.calls if method == "POST"] == ["/api/v1/tasks/b/kill"]
    assert "killed task b" in "".join(capsys.readouterr())
