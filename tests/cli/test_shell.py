"""``det shell``: the requests that it sends, what it says while it waits, and what it opens."""

from typing import Any

import pytest

from determined_cli.command_noun import shell as shell_verbs

from .conftest import Det, FakeMaster

ID, OTHER = "3f2b8c1e-0000-4000-8000-000000000001", "7a000000-0000-4000-8000-000000000002"
SHELL = {
    "id": ID,
    "description": "Shell (quiet-owl)",
    "state": "STATE_RUNNING",
    "startTime": "2026-01-01T00:00:00Z",
    "username": "admin",
    "resourcePool": "default",
    "jobId": "j",
    "slots": 1,
    "priority": 42,
    "container": {"id": "c", "state": "STATE_RUNNING", "parent": "agent-1"},
    "idleSince": "2026-01-01T00:05:00Z",
    "idleTimeout": 1800.0,
}
ENDED = {**SHELL, "state": "STATE_TERMINATED", "exitStatus": "idle for 30 minutes", "idleSince": None}
S = "/api/v1/shells"
READY = {"task": {"taskId": ID, "endTime": None, "allocations": [{"isReady": True}]}}
WAITS = {"task": {"taskId": ID, "endTime": None, "allocations": []}}


@pytest.fixture(autouse=True)
def prepared_answers(fake: FakeMaster) -> None:
    fake.answers.update(
        {
            f"POST {S}": {"shell": SHELL, "config": {}, "notes": ["the shell asked for too much"]},
            f"GET {S}": {"shells": [SHELL, {**SHELL, "id": OTHER}], "pagination": {"total": 2, "endIndex": 2}},
            f"GET {S}/{ID}": {"shell": SHELL, "config": {"idle_timeout": 1800.0}},
            f"GET /api/v1/tasks/{ID}": READY,
            f"POST {S}/{ID}/kill": {"shell": ENDED},
            f"POST {S}/{ID}/set_priority": {"shell": SHELL},
            "GET /api/v1/me": {"user": {"username": "admin", "id": 1}},
        }
    )


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks whose terminals were opened; the program in each ends with code 3."""
    tasks: list[str] = []

    def run_in_task(_session: object, task_id: str, argv: list[str], **options: Any) -> int:
        assert (argv, options) == ([], {"has_input": True, "has_terminal": True})
        tasks.append(task_id)
        return 3

    monkeypatch.setattr(shell_verbs.execution, "run_in_task", run_in_task)
    monkeypatch.setattr(shell_verbs.local_terminal, "has_terminal", lambda: True)
    monkeypatch.setattr(shell_verbs, "POLL_SECONDS", 0)
    return tasks


def test_shell_start_opens_the_shell_and_says_how_long_it_stays(det: Det, fake: FakeMaster, entered: list[str]):
    done = det("shell", "start", "--config", "resources.slots=0", "-v", "/data:/in")
    assert (done.code, entered) == (3, [ID])
    assert fake.requests_to(f"POST {S}")[-1].json == {
        "config": {"resources": {"slots": 0}, "bind_mounts": [{"host_path": "/data", "container_path": "/in"}]}
    }
    assert "warning: the shell asked for too much" in done.err
    assert f"Started shell {ID} (Shell (quiet-owl))" in done.err
    assert f"shell {ID} keeps running until nobody was connected for 30 min." in done.err


def test_shell_start_says_each_reason_why_it_waits_once(det: Det, fake: FakeMaster, entered: list[str]):
    why = f"GET /detent/tasks/{ID}/why"
    answers = iter([WAITS, WAITS, WAITS, READY])
    fake.answers[f"GET /api/v1/tasks/{ID}"] = lambda _request: next(answers)
    first = {"reason": "needs 1 slot; 0 of 2 free"}
    reasons = iter([{"waiting": 1, "first": first, "notes": []}] * 2 + [{"waiting": 0, "first": None, "notes": []}])
    fake.answers[why] = lambda _request: next(reasons)
    fake.answers[f"GET {S}/{ID}"] = {"shell": {**SHELL, "state": "STATE_PULLING"}, "config": {}}
    done = det("shell", "start")
    assert done.err.count("waits: needs 1 slot; 0 of 2 free") == 1
    assert f"shell {ID} waits: its image is pulled" in done.err
    assert entered == [ID]


def test_shell_start_detached_prints_only_the_id_and_needs_no_terminal(det: Det, fake: FakeMaster):
    done = det("shell", "start", "-d")
    assert (done.code, done.out) == (0, f"{ID}\n")
    assert fake.requests_to(f"GET /api/v1/tasks/{ID}") == []


def test_shell_start_without_a_terminal_starts_nothing(det: Det, fake: FakeMaster):
    done = det("shell", "start")
    assert done.code == 1
    assert "a shell needs a terminal; --detach starts one without opening it and prints its id" in done.err
    assert fake.requests_to(f"POST {S}") == []


def test_shell_open_of_one_that_has_ended_says_how_it_ended(det: Det, fake: FakeMaster, entered: list[str]):
    fake.answers[f"GET /api/v1/tasks/{ID}"] = {"task": {**READY["task"], "endTime": "2026-01-01T01:00:00Z"}}
    fake.answers[f"GET {S}/{ID}"] = {"shell": ENDED, "config": {}}
    done = det("shell", "open", "3f2b")
    assert f"shell {ID} has ended: idle for 30 minutes; `det shell logs {ID}` prints its log" in done.err
    assert entered == []


def test_a_shell_that_ended_while_it_was_open_is_not_said_to_keep_running(
    det: Det, fake: FakeMaster, entered: list[str]
):
    fake.answers[f"GET {S}/{ID}"] = {"shell": ENDED, "config": {}}
    assert "keeps running" not in det("shell", "open", ID).err
    assert entered == [ID]


def test_shell_list_shows_since_when_shells_are_idle(det: Det, fake: FakeMaster):
    done = det("shell", "list", "--csv")
    columns = "ID,Description,Owner,State,Slots,Started,Idle Since,Exit Status,Resource Pool"
    assert done.out.splitlines()[0] == columns
    assert "2026-01-01T00:05:00Z" in done.out
    assert fake.requests_to(f"GET {S}")[-1].query["users"] == ["admin"]


def test_shell_describe_config_kill_and_priority_take_the_beginning_of_an_id(det: Det, fake: FakeMaster):
    described = det("shell", "describe", "3f2b").out
    assert "Idle Timeout   1800" in described
    assert described.count("Idle Since") == 1
    assert det("shell", "config", "3f2b").out == "idle_timeout: 1800.0\n"
    assert f"killed shell {ID}" in det("shell", "kill", "3f2b").err
    assert f"set the priority of shell {ID} to 7" in det("shell", "set", "priority", "3f2b", "7").err
    assert fake.requests_to(f"POST {S}/{ID}/set_priority")[-1].json == {"shellId": ID, "priority": 7}
    assert "shell '9' not found" in det("shell", "kill", "9").err
