"""Runs whose runner or supervisor is killed: an ended command is stored, and any other command runs again."""

import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.support.waiting import wait_until
from tests.workflows.runner.conftest import Start
from tests.workflows.runner.runner_process import Runner, freeze, is_gone, process_state, states

from determined_workflows.runner import supervisor

GRID = """\
resource: [0, 1]
template:
  work: >
    echo $$ > pid.{n}; echo start >> starts.{n};
    until [ -e go ]; do sleep 0.01; done
---
n: [1, 2]
"""
TWELVE = """\
resource: [0, 1, 2]
template:
  work: echo start >> starts.{n}; sleep 0.05; echo done >> done.{n}
---
n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
"""
FINISHED = {"N_1": {"work": "finished"}, "N_2": {"work": "finished"}}


@pytest.fixture
def runner(folder: Path, start: Start) -> Runner:
    (folder / "params.yaml").write_text(GRID)
    return start()


def starts(folder: Path) -> dict[str, int]:
    """Returns the number of starts of each command."""
    return {path.suffix[1:]: path.read_text().count("start") for path in folder.glob("starts.*")}


def test_the_supervisor_stores_ends_while_the_runner_is_suspended(runner: Runner, folder: Path, start: Start) -> None:
    runner.pids()
    freeze(runner.process.pid)
    (folder / "go").touch()
    wait_until(lambda: states(folder) == FINISHED)
    runner.kill()
    code, output = start().end()
    assert code == 0, output
    assert "Skipped tasks: 2/2" in output
    assert starts(folder) == {"1": 1, "2": 1}


def test_the_runner_stores_ends_that_a_killed_supervisor_has_not(runner: Runner, folder: Path, start: Start) -> None:
    """The supervisor is killed between the end of the commands and the files of their states."""
    pids = runner.pids()
    parent = runner.supervisor()
    freeze(parent)
    (folder / "go").touch()
    wait_until(lambda: [process_state(pid) for pid in pids] == ["Z", "Z"])
    assert {state for task in states(folder).values() for state in task.values()} == {"running"}
    os.kill(parent, signal.SIGKILL)
    code, output = runner.end()
    assert code == 128 + signal.SIGKILL
    assert "The process that supervises the commands was killed." in output
    assert states(folder) == FINISHED
    assert start().end()[0] == 0
    assert starts(folder) == {"1": 1, "2": 1}


def test_commands_of_a_killed_supervisor_are_ended_and_run_again(runner: Runner, folder: Path, start: Start) -> None:
    pids = runner.pids()
    os.kill(runner.supervisor(), signal.SIGKILL)
    code, output = runner.end()
    assert code == 128 + signal.SIGKILL
    assert output.count("its supervisor was killed; it will run again") == 2
    assert all(is_gone(pid) for pid in pids)
    (folder / "go").touch()
    assert start().end()[0] == 0
    assert states(folder) == FINISHED
    assert starts(folder) == {"1": 2, "2": 2}


def test_commands_that_survive_runner_and_supervisor_are_ended_by_the_next_run(
    runner: Runner, folder: Path, start: Start
) -> None:
    pids = runner.pids()
    parent = runner.supervisor()
    freeze(parent)
    os.kill(runner.process.pid, signal.SIGKILL)
    os.kill(parent, signal.SIGKILL)
    runner.end()
    assert not any(is_gone(pid) for pid in pids)
    for number in (1, 2):
        (folder / f"pid.{number}").unlink()
    second_runner = start()
    second_runner.pids()
    assert all(is_gone(pid) for pid in pids)
    (folder / "go").touch()
    assert second_runner.end()[0] == 0
    assert starts(folder) == {"1": 2, "2": 2}


def test_a_temporary_file_of_a_killed_run_is_ignored_and_replaced(runner: Runner, folder: Path, start: Start) -> None:
    """The run was killed between writing a temporary file and renaming it."""
    runner.pids()
    runner.kill()
    plans = [folder / "output" / "N_1" / name for name in (".stat.draft", ".param.draft")]
    for draft in plans:
        draft.write_text("work: finis")
    (folder / "go").touch()
    assert start().end()[0] == 0
    assert states(folder) == FINISHED
    assert starts(folder) == {"1": 2, "2": 2}
    assert not any(draft.exists() for draft in plans)


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 14))])
def test_a_grid_that_is_killed_at_random_moments_runs_each_command_once(seed: int, folder: Path, start: Start) -> None:
    """The moment is shortly after the start of a random command."""
    (folder / "params.yaml").write_text(TWELVE)
    choice = random.Random(seed)
    expected = dict.fromkeys(map(str, range(1, 13)), 1)
    for kills_supervisor in choice.sample([False, False, True], 3):
        moment = sum(starts(folder).values()) + choice.randrange(1, 5)
        runner = start()
        victim = runner.supervisor() if kills_supervisor else runner.process.pid
        wait_until(partial(_is_reached, folder, runner, moment))
        if not runner.has_ended:
            for _ in range(choice.randrange(100_000)):  # waits some milliseconds: a command waits, ends or starts
                pass
            os.kill(victim, signal.SIGKILL)
        runner.end()
        stored = states(folder)
        for number, count in starts(folder).items():
            is_done = stored[f"N_{number}"] == {"work": "finished"}
            expected[number] = count if is_done else count + 1
    code, output = start().end()
    assert code == 0, output
    assert states(folder) == {f"N_{number}": {"work": "finished"} for number in range(1, 13)}
    assert starts(folder) == expected
    assert all((folder / f"done.{number}").exists() for number in range(1, 13))


def _is_reached(folder: Path, runner: Runner, moment: int) -> bool:
    return sum(starts(folder).values()) >= moment or runner.has_ended


ARMED = """\
import os, runpy, signal, sys


def arm(moment):
    renames, rename = iter(range(1, 1000)), os.replace

    def replace(*names):
        if next(renames) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*names)

    os.replace = replace


victim, moment, supervisor_path = os.environ["VICTIM"].split(":")
if sys.argv[1] == "runner":
    from determined_cli.main import main
    from determined_workflows.runner import supervisor

    if victim == "runner":
        arm(int(moment))
    else:
        supervisor.__file__ = __file__
    sys.exit(main(["runner", "run"]))
arm(int(moment))
runpy.run_path(supervisor_path, run_name="__main__")
"""
SHORT = "resource: [0]\ntemplate: {work: 'echo start >> starts.{n}'}\n---\nn: [1, 2]\n"
LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        ("runner", 1),  # the copy of params.yaml
        ("runner", 2),  # param of the first task
        pytest.param("runner", 3, marks=LONG),
        ("runner", 4),  # the exit code
        ("supervisor", 1),  # the first task is running
        ("supervisor", 2),  # it has finished
        pytest.param("supervisor", 3, marks=LONG),
        pytest.param("supervisor", 4, marks=LONG),
    ],
)
def test_a_kill_before_the_rename_of_a_temporary_file_loses_no_state(
    victim: str, moment: int, folder: Path, start: Start
) -> None:
    (folder / "params.yaml").write_text(SHORT)
    armed = folder / "armed.py"
    armed.write_text(ARMED)
    environment = {**os.environ, "VICTIM": f"{victim}:{moment}:{supervisor.__file__}"}
    argv = [sys.executable, str(armed), "runner"]
    killed = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert killed.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), killed.stderr
    stored = states(folder)
    expected = {
        number: starts(folder).get(number, 0) + (stored.get(f"N_{number}") != {"work": "finished"}) for number in "12"
    }
    code, output = start().end()
    assert code == 0, output
    assert states(folder) == FINISHED
    assert starts(folder) == expected
    if victim == "supervisor":  # the runner stored what had ended, so no command ran twice
        assert expected == {"1": 1, "2": 1}
