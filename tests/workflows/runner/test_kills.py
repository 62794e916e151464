"""A runner that is killed or interrupted: nothing keeps running, nothing is skipped that has not finished."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.waiting import wait_until
from tests.workflows.runner.conftest import Run

from determined_workflows.runner import status

# A task writes its process, waits until the file `go` is there, and then says that it is done.
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


class Runner:
    """``det runner run`` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "determined_cli", "runner", "run"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def pids(self) -> list[int]:
        """Waits until two tasks run, and returns their processes."""

        def texts() -> list[str]:
            found = [path.read_text().strip() for path in self.folder.glob("pid.[12]")]
            return found if len(found) == 2 and all(found) else []

        return [int(text) for text in wait_until(texts)]

    def end(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=60)
        return self.process.returncode, output


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[], Runner]]:
    started: list[Runner] = []

    def start_one() -> Runner:
        started.append(Runner(folder))
        return started[-1]

    yield start_one
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.fixture
def runner(folder: Path, request: pytest.FixtureRequest, start: Callable[[], Runner]) -> Runner:
    (folder / "params.yaml").write_text(getattr(request, "param", GRID))
    return start()


def is_gone(pid: int) -> bool:
    """A zombie is gone: only its parent has not noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def states(folder: Path) -> dict[str, object]:
    return {path.parent.name: yaml.safe_load(path.read_text()) for path in (folder / "output").glob("*/stat")}


def test_a_killed_run_leaves_no_command_and_its_tasks_run_again(
    runner: Runner, folder: Path, start: Callable[[], Runner]
) -> None:
    pids = runner.pids()
    runner.process.send_signal(signal.SIGKILL)
    runner.process.wait()
    assert states(folder) == {"N_1": {"work": "running"}, "N_2": {"work": "running"}}
    wait_until(lambda: {task.state for task in status.read(folder / "output")} == {"interrupted"})
    # The next run waits for the end of the commands before it starts its own.
    again = start()
    wait_until(lambda: not set(again.pids()) & set(pids))
    assert all(is_gone(pid) for pid in pids)
    (folder / "go").touch()
    code, output = again.end()
    assert code == 0, output
    assert states(folder) == {f"N_{n}": {"work": "finished", "after": "finished"} for n in (1, 2, 3, 4)}
    assert [(folder / f"done.{n}").read_text() for n in (1, 2, 3, 4)] == ["done\n"] * 4
    assert sorted((folder / "after").read_text().split()) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_its_commands(runner: Runner, folder: Path, number: int, code: int) -> None:
    pids = runner.pids()
    runner.process.send_signal(number)
    found, output = runner.end()
    assert found == code
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


def test_children_that_a_command_leaves_behind_are_ended(run: Run, folder: Path) -> None:
    code, _ = run(
        "resource: [0]\ntemplate:\n  a: >\n    (echo $BASHPID > pid; exec sleep 300) & until [ -s pid ]; do :; done\n---\nn: 1\n"
    )
    assert code == 0
    assert wait_until(lambda: is_gone(int((folder / "pid").read_text())))


def test_a_signal_that_does_not_end_the_run_is_ignored(run: Run) -> None:
    """Libraries handle SIGCHLD, which then comes at the end of each command."""
    before = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    try:
        code, lines = run("resource: [0]\ntemplate: {a: 'true'}\n---\nn: [1, 2]\n")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert code == 0
    assert lines[-1] == "No task failed."
