"""Runs that are killed or interrupted: no process survives, and no unfinished command is skipped."""

import signal
from pathlib import Path

import pytest
from tests.support.waiting import wait_until
from tests.workflows.runner.conftest import Run, Start
from tests.workflows.runner.runner_process import Runner, is_gone, states

from determined_workflows.runner import status

# A task writes its pid, waits until the file `go` exists, and then writes `done`.
GRID = """\
template:
  work: >
    echo $$ > pid.{n};
    trap '' {trap};
    for i in {1..3000}; do [ -e go ] && break; sleep 0.02; done;
    echo done >> done.{n}
  after: echo {n} >> after
default: {trap: USR1}
resource: [0, 1]
---
n: [1, 2, 3, 4]
"""


@pytest.fixture
def runner(folder: Path, request: pytest.FixtureRequest, start: Start) -> Runner:
    (folder / "params.yaml").write_text(getattr(request, "param", GRID))
    return start()


def test_a_killed_run_leaves_no_command_and_its_tasks_run_again(runner: Runner, folder: Path, start: Start) -> None:
    pids = runner.pids()
    runner.kill()
    assert states(folder) == {"N_1": {"work": "running"}, "N_2": {"work": "running"}}
    wait_until(lambda: {task.state for task in status.read(folder / "output")} == {"interrupted"})
    # The next run waits for the end of the commands before it starts its own.
    second_runner = start()
    wait_until(lambda: not set(second_runner.pids()) & set(pids))
    assert all(is_gone(pid) for pid in pids)
    (folder / "go").touch()
    code, output = second_runner.end()
    assert code == 0, output
    assert states(folder) == {f"N_{n}": {"work": "finished", "after": "finished"} for n in (1, 2, 3, 4)}
    assert [(folder / f"done.{n}").read_text() for n in (1, 2, 3, 4)] == ["done\n"] * 4
    assert sorted((folder / "after").read_text().split()) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_its_commands(runner: Runner, folder: Path, number: int, expected: int) -> None:
    pids = runner.pids()
    runner.process.send_signal(number)
    code, output = runner.end()
    assert code == expected
    assert "`det runner run` with the same options continues it." in output
    assert all(is_gone(pid) for pid in pids)
    assert states(folder) == {"N_1": {"work": "failed"}, "N_2": {"work": "failed"}}


@pytest.mark.parametrize("runner", [GRID.replace("USR1", "TERM")], indirect=True)
def test_a_second_signal_kills_commands_that_ignore_the_first(runner: Runner) -> None:
    pids = runner.pids()
    runner.process.send_signal(signal.SIGINT)
    runner.process.send_signal(signal.SIGTERM)
    code, _ = runner.end()
    assert code in (130, 143)
    assert all(is_gone(pid) for pid in pids)


def test_a_second_run_on_one_output_is_refused(runner: Runner, folder: Path, run: Run) -> None:
    runner.pids()
    code, lines = run(GRID)
    assert code == 7
    assert lines[-1] == (
        f"det: another run (process {runner.process.pid}) uses output; wait for it, or choose another output with -o"
    )
    (folder / "go").touch()
    assert runner.end()[0] == 0


def test_a_run_whose_output_is_closed_completes_its_commands(runner: Runner, folder: Path) -> None:
    pids = runner.pids()
    assert runner.process.stdout is not None
    runner.process.stdout.close()
    (folder / "go").touch()
    assert runner.process.wait(timeout=60) == 0
    assert all(is_gone(pid) for pid in pids)


def test_a_change_of_the_params_file_during_a_run_has_no_effect_on_it(runner: Runner, folder: Path) -> None:
    runner.pids()
    (folder / "params.yaml").write_text("template: [")
    (folder / "go").touch()
    code, output = runner.end()
    assert code == 0, output
    assert len(states(folder)) == 4
    assert (folder / "output" / "params.yaml").read_text() == GRID


def test_child_processes_that_a_command_leaves_are_ended(run: Run, folder: Path) -> None:
    code, _ = run(
        "resource: [0]\ntemplate:\n  a: >\n    (echo $BASHPID > pid; exec sleep 300) & until [ -s pid ]; do :; done\n---\nn: 1\n"
    )
    assert code == 0
    assert wait_until(lambda: is_gone(int((folder / "pid").read_text())))


def test_child_processes_in_another_session_are_ended(run: Run, folder: Path) -> None:
    code, _ = run(
        "resource: [0]\ntemplate:\n  a: >\n    (setsid bash -c 'echo $$ > pid; exec sleep 300' &) ; until [ -s pid ]; do :; done"
        "\n  b: kill -0 $(cat pid)\n---\nn: 1\n"
    )
    assert code == 1
    assert wait_until(lambda: is_gone(int((folder / "pid").read_text())))


def test_child_processes_of_a_running_command_are_not_ended(run: Run) -> None:
    """The parent of the child ends before the command does."""
    code, lines = run(
        "resource: [0, 0]\ntemplate:\n  a: >\n    (setsid bash -c 'echo $$ > pid.{n}; exec sleep 300' &) ; until [ -s pid.{n} ]; do :; done;\n"
        "    true & wait; kill -0 $(cat pid.{n})\n---\nn: [1, 2]\n"
    )
    assert code == 0, lines


def test_a_signal_that_does_not_end_the_run_is_ignored(run: Run) -> None:
    """Libraries may handle SIGCHLD, which then arrives at the end of each command."""
    before = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    try:
        code, lines = run("resource: [0]\ntemplate: {a: 'true'}\n---\nn: [1, 2]\n")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert code == 0
    assert lines[-1] == "No task failed."
