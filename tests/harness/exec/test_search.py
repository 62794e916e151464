"""The task that runs a search method, against a small master: its requests, and its report of a failing method."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_master import FakeMaster, serving, task_environment

from determined.exec import search

START = {
    "searcher": {
        "name": "search_method",
        "method": "mine_of_test:Mine",
        "metric": "loss",
        "smaller_is_better": True,
        "max_trials": 3,
        "max_concurrent_trials": 2,
        "time_metric": None,
        "event_timeout": 60,
        "arguments": {"x": 0.25},
    },
    "hyperparameters": {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}},
    "seed": 3,
    "cursor": -1,
    "snapshot": None,
    "isOver": False,
}
BASE = "from determined.searcher import SearchMethod, Create\nclass Mine(SearchMethod):\n"
PATH = "/search-task"


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMaster]:
    """Yields a master whose search is over after the first step. The working folder is that of the context."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with serving() as server:
        for name, value in (task_environment(server, tmp_path) | {"DET_EXPERIMENT_ID": "7"}).items():
            monkeypatch.setenv(name, value)
        server.on("GET", PATH, (200, START))
        server.on("POST", f"{PATH}/steps", (200, {"isOver": True}))
        yield server
    sys.modules.pop("mine_of_test", None)


def write_method(folder: Path, *lines: str) -> None:
    (folder / "mine_of_test.py").write_text(BASE + "".join(f"    {line}\n" for line in (*lines, "pass")))


def failures(master: FakeMaster) -> list[tuple[str, bool]]:
    return [(failure["reason"], failure["isFinal"]) for failure in master.bodies(f"{PATH}/failures")]


def test_the_first_actions_and_the_snapshot_are_sent_together(master: FakeMaster, tmp_path: Path):
    write_method(tmp_path, "def initial(self):", "    return [self.create(self.context.arguments, 'as asked')]")
    assert search.main() == 0
    (body,) = master.bodies(f"{PATH}/steps")
    (action,) = body["actions"]
    assert (body["cursor"], body["to"], body["progress"]) == (-1, 0, None)
    assert (action["kind"], action["hparams"], action["reason"]) == ("create", {"x": 0.25}, "as asked")
    assert body["snapshot"]["running"] == [action["request_id"]]


def test_a_search_continues_from_its_snapshot_and_reads_the_events_after_its_cursor(master: FakeMaster, tmp_path: Path):
    write_method(
        tmp_path,
        "def restore(self, snapshot): self.seen = snapshot",
        "def snapshot(self): return self.seen",
        "def on_validation(self, event):",
        "    self.seen.append([event.metric, event.time])",
        "    return []",
    )
    state = {"limits": [3, 2], "running": ["a"], "waiting": [], "counts": {"ended": 0, "failed": 0, "canceled": 0}}
    stored = {**state, "over": False, "method": [[1.0, 1.0]]}
    master.on("GET", PATH, (200, {**START, "cursor": 8, "snapshot": stored}))
    event = {"kind": "validated", "requestId": "a", "steps": 2, "time": 2.0, "metric": 0.5, "metrics": {"loss": 0.5}}
    master.on("GET", f"{PATH}/events", (200, {"to": 9, "events": [event], "isOver": False}))
    assert search.main() == 0
    (body,) = master.bodies(f"{PATH}/steps")
    assert (body["cursor"], body["to"], body["snapshot"]["method"]) == (8, 9, [[1.0, 1.0], [0.5, 2.0]])


def test_a_step_that_another_task_has_sent_is_skipped(master: FakeMaster, tmp_path: Path):
    write_method(tmp_path)
    answers = iter([(409, {"error": {"code": 6, "error": "is at event 0"}}), (200, {"isOver": True})])
    master.on("POST", f"{PATH}/steps", lambda _body: next(answers))
    assert search.main() == 0
    assert len(master.bodies(f"{PATH}/steps")) == 2


@pytest.mark.parametrize(
    ("lines", "expected", "is_final"),
    [
        (["def initial(self):", "    raise KeyError('x')"], "Mine.initial raised KeyError: 'x' (mine_of_test.py:4)", False),
        (["def initial(self):", "    raise SystemExit(0)"], "Mine.initial raised SystemExit: 0 (mine_of_test.py:4)", False),
        (
            ["def initial(self):", "    return (Create(str(n), {'x': 1}, 1) for n in range(10**6))"],
            "Mine.initial asks for more than 3 trials (searcher.max_trials); create no more than self.room, or raise "
            "max_trials",
            True,
        ),
        (["def initial(self): return 1"], "Mine.initial returned 1 (int); return a list of Create, Stop and Shutdown", True),
        (["def __init__(self, context): pass"], "mine_of_test:Mine: its constructor does not call super().__init__(context)", True),
        (["def initial(self: return"], "mine_of_test:Mine cannot be loaded: SyntaxError", True),
        (["import nowhere_at_all"], "mine_of_test:Mine cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all' (mine_of_test.py:3)", True),
        (["def initial_operations(self): pass"], "Mine is written for the SearchMethod of Determined 2022", True),
    ],
)  # fmt: skip
def test_a_failing_method_is_reported_with_the_reason(
    master: FakeMaster,
    tmp_path: Path,
    lines: list[str],
    expected: str,
    is_final: bool,
    capsys: pytest.CaptureFixture[str],
):
    write_method(tmp_path, *lines)
    assert search.main() == 1
    ((reason, final),) = failures(master)
    assert reason.startswith(expected)
    assert final is is_final
    assert f"ERROR: {reason}" in capsys.readouterr().err
    assert master.bodies(f"{PATH}/steps") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "there is no module mine_of_test in"),
        ("class Mine: pass\n", "mine_of_test:Mine is not a subclass of determined.searcher.SearchMethod"),
        ("class Other: pass\n", "mine_of_test has no class Mine; it has Other"),
    ],
)
def test_a_missing_search_class_is_a_final_failure(master: FakeMaster, tmp_path: Path, text: Any, expected: str):
    if text is not None:
        (tmp_path / "mine_of_test.py").write_text(text)
    assert search.main() == 1
    ((reason, final),) = failures(master)
    assert (reason.startswith(expected), final) == (True, True), reason


def test_actions_that_the_master_refuses_are_a_final_failure(master: FakeMaster, tmp_path: Path):
    write_method(tmp_path)
    master.on("POST", f"{PATH}/steps", (400, {"error": {"code": 3, "error": "without a value of x"}}))
    assert search.main() == 1
    assert failures(master) == [("without a value of x", True)]


def test_a_task_of_a_fenced_attempt_ends_without_a_report(master: FakeMaster):
    master.on("GET", PATH, (401, {"error": {"code": 16, "error": "fenced: allocation 7.a.1 has ended"}}))
    assert search.main() == 1
    assert failures(master) == []


def test_a_method_that_hangs_is_ended_and_named_with_its_stack(master: FakeMaster, tmp_path: Path):
    write_method(tmp_path, "def initial(self):", "    import threading", "    threading.Event().wait()")
    impatient = {**START, "searcher": {**START["searcher"], "event_timeout": 1}}  # type: ignore[dict-item]
    master.on("GET", PATH, (200, impatient))
    ran = subprocess.run(
        [sys.executable, "-m", "determined.exec.search"], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == search.HUNG, ran.stderr
    assert failures(master) == [("Mine.initial did not return within 1 s (searcher.event_timeout)", False)]
    assert "mine_of_test.py" in ran.stderr
    assert "in initial" in ran.stderr


def test_the_search_program_is_refused_outside_of_a_task(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("DET_MASTER", raising=False)
    assert search.main() == 2
    assert "only the master starts this" in capsys.readouterr().err
