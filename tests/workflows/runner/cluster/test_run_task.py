"""A trial of a grid: commands in order, a checkpoint after each, pause and resumption."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from determined import core
from determined_workflows.runner.task import run_task
from determined_workflows.runner.task.run_task import TaskRun

TIME = "20261125.101010"


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[core.Context]:
    monkeypatch.chdir(tmp_path)
    with core.init(checkpoint_storage=str(tmp_path / "store")) as core_context:
        yield core_context


def newest(tmp_path: Path) -> str:
    stored = {path.name: json.loads((path / "metadata.json").read_text()) for path in (tmp_path / "store").iterdir()}
    return max(stored, key=lambda uuid: stored[uuid]["steps_completed"])


def states(tmp_path: Path) -> dict[str, str]:
    states_by_command: dict[str, str] = json.loads((tmp_path / "output/task/stat").read_text())
    return states_by_command


def test_commands_run_in_order_up_to_the_first_failure(context: core.Context, tmp_path: Path) -> None:
    commands = {"train": "echo trained > output/task/model", "test": "cat output/task/model; exit 3", "end": "touch x"}
    assert TaskRun(context, Path("output/task"), commands, TIME).run({"lr": 0.1}) == 1
    assert states(tmp_path) == {"train": "finished", "test": "failed"}
    assert (tmp_path / f"output/task/log.test.{TIME}").read_text() == "trained\n"
    assert not (tmp_path / "x").exists()
    param = json.loads((tmp_path / "output/task/param").read_text())
    assert (param["lr"], list(param["_scripts"])) == (0.1, ["train", "test", "end"])
    stored = tmp_path / "store" / newest(tmp_path) / "task"
    assert sorted(path.name for path in stored.iterdir()) == sorted(
        path.name for path in (tmp_path / "output/task").iterdir()
    )


def test_a_resumed_trial_skips_finished_commands(context: core.Context, tmp_path: Path) -> None:
    commands = {"train": "echo once >> trained; echo m > output/task/model", "test": "test -e ready"}
    assert TaskRun(context, Path("output/task"), commands, TIME).run({}) == 1
    (tmp_path / "output").rename(tmp_path / "gone")
    (tmp_path / "ready").touch()
    del commands["train"]  # as with -c test
    run = TaskRun(context, Path("output/task"), commands, TIME)
    run.restore(newest(tmp_path))
    assert run.run({}) == 0
    assert states(tmp_path) == {"train": "finished", "test": "finished"}
    assert (tmp_path / "trained").read_text() == "once\n"
    assert (tmp_path / "output/task/model").read_text() == "m\n"
    assert len(list((tmp_path / "store").iterdir())) == 3
    assert list(json.loads((tmp_path / "output/task/param").read_text())["_scripts"]) == ["train", "test"]


def test_a_pause_interrupts_the_command_and_stores_its_files(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "output/task/started"
    monkeypatch.setattr(context.preempt, "should_preempt", started.exists)
    commands = {"train": "touch output/task/started; sleep 1000 & echo $! > child; wait"}
    assert TaskRun(context, Path("output/task"), commands, TIME).run({}) == 0
    assert states(tmp_path) == {"train": "running"}
    assert (tmp_path / "store" / newest(tmp_path) / "task" / "started").exists()
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])


def test_child_processes_that_a_command_leaves_are_ended(context: core.Context, tmp_path: Path) -> None:
    commands = {"train": "sleep 1000 & echo $! > child"}
    assert TaskRun(context, Path("output/task"), commands, TIME).run({}) == 0
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])


def test_a_process_that_has_left_the_group_does_not_hold_the_trial(
    context: core.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_task, "DRAIN_SECONDS", 0.1)
    commands = {"train": "setsid sleep 60 & echo $! > pid; echo hi"}
    began = time.monotonic()
    assert TaskRun(context, Path("output/task"), commands, TIME).run({}) == 0
    assert time.monotonic() - began < 30
    os.kill(int(Path("pid").read_text()), signal.SIGKILL)
