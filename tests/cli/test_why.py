"""``det why``: the explanation of waiting, failed and slow tasks as sentences."""

from typing import Any

import pytest
from tests.support.fake_master import FakeMaster, serving

from determined_cli.main import main

FIRST = {
    "allocationId": "3.1.1",
    "taskId": "3.1",
    "trialId": 5,
    "pool": "default",
    "slots": 4,
    "priority": 42,
    "reason": "needs 4 slots; 2 of 8 free in pool 'default'",
    "ahead": 2,
    "blockers": [
        {"allocationId": "1.1.1", "name": "trial 1 of experiment 1 (digits)", "why": "running", "secondsLeft": 3700.0}
    ],
    "startsInSeconds": 3700.0,
    "unknown": "",
    "changes": {
        "slots": 2,
        "priority": 41,
        "maxSlots": None,
        "pools": ["big"],
        "agents": ["gpu-2"],
        "slotIds": [{"agentId": "gpu-1", "slotId": 3}],
        "pausedJobs": [{"jobId": "a1", "name": "experiment 1 (digits)"}],
    },
}


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Any:
    with serving() as server:
        monkeypatch.setenv("DET_MASTER", server.url)
        monkeypatch.setenv("DET_USER_TOKEN", "secret")
        server.on("GET", "/experiments/3/status", (200, {"text": "failed: out of memory"}))
        yield server


def test_why_of_a_waiting_experiment_names_blockers_start_and_changes(
    master: FakeMaster, capsys: pytest.CaptureFixture[str]
):
    master.on("GET", "/experiments/3/why", (200, {"waiting": 2, "first": FIRST}))
    assert main(["why", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "experiment 3 waits (2 of its trials wait): needs 4 slots; 2 of 8 free in pool 'default'",
        "place: it has 2 ahead in the queue of pool default, with priority 42",
        "in its way: trial 1 of experiment 1 (digits) holds slots that it could use, for about 1 h 1 min more",
        "expected start: in about 1 h 1 min",
        "starts it now: 2 slots instead of 4 (resources.slots_per_trial)",
        "starts it now: priority 41 (det job update)",
        "starts it now: pool big (det job update --resource-pool big)",
        "starts it now: det agent enable gpu-2",
        "starts it now: det slot enable gpu-1 3",
        "starts it now: pausing experiment 1 (digits), once it has left",
    ]


def test_why_of_a_failed_experiment_prints_the_cause(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    master.on("GET", "/experiments/3/why", (200, {"waiting": 0, "first": None}))
    assert main(["why", "3"]) == 0
    assert capsys.readouterr().out == "experiment 3: failed: out of memory\n"


def test_why_names_the_reason_if_the_start_cannot_be_estimated(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    none = {"slots": None, "priority": None, "maxSlots": None}
    none |= {key: [] for key in ("pools", "agents", "slotIds", "pausedJobs")}
    first = {**FIRST, "startsInSeconds": None, "unknown": "nobody knows how long 1.1.1 will run", "changes": none}
    master.on("GET", "/tasks/b7/why", (200, {"waiting": 1, "first": first}))
    assert main(["why", "b7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["expected start: nobody knows how long 1.1.1 will run", "no single change starts it now"]


def test_why_of_a_running_task_explains_slow_starts(master: FakeMaster, capsys: pytest.CaptureFixture[str]):
    note = "image mine holds no byte code of torch: each start compiles the modules that it imports"
    master.on("GET", "/tasks/b7/why", (200, {"waiting": 0, "first": None, "notes": [note]}))
    assert main(["why", "b7"]) == 0
    assert capsys.readouterr().out.splitlines() == ["task b7 does not wait for slots", f"slow starts: {note}"]


def test_names_of_other_peoples_experiments_do_not_act_in_the_terminal(
    master: FakeMaster, capsys: pytest.CaptureFixture[str]
):
    first = {**FIRST, "reason": "needs 4 slots \x1b]0;owned\x07"}
    master.on("GET", "/tasks/b7/why", (200, {"waiting": 1, "first": first}))
    assert main(["why", "b7"]) == 0
    printed = capsys.readouterr().out
    assert "owned" in printed
    assert not {"\x1b", "\x07"} & set(printed)
