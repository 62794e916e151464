"""``det runner stop``, ``attach`` and ``retry`` from another terminal than that of the run."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workflows.runner.conftest import Run, Start
from tests.workflows.runner.runner_process import Runner, is_gone, states

from determined_cli.main import main
from determined_launch.pid_lock import PidLock

# Two tasks run until the file `go` exists, and two wait.
GRID = """\
resource: [0, 1]
template:
  work: >
    echo $$ > pid.{n};
    until [ -e go ]; do sleep 0.01; done
  after: 'true'
---
n: [1, 2, 3, 4]
"""


@pytest.fixture
def runner(folder: Path, start: Start) -> Runner:
    (folder / "params.yaml").write_text(GRID)
    return start()


def attach(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "determined_cli", "runner", "attach"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_stop_ends_the_commands_and_the_next_run_continues(runner: Runner, folder: Path, start: Start) -> None:
    pids = runner.pids()
    assert main(["runner", "stop"]) == 0
    code, output = runner.end()
    assert code == 128 + signal.SIGTERM
    assert "`det runner run` with the same options continues it." in output
    assert all(is_gone(pid) for pid in pids)
    (folder / "go").touch()
    assert start().end()[0] == 0
    assert len(states(folder)) == 4


def test_stop_with_drain_lets_running_commands_end(runner: Runner, folder: Path) -> None:
    runner.pids()
    stop = subprocess.Popen(
        [sys.executable, "-m", "determined_cli", "runner", "stop", "--drain"], cwd=folder, stderr=subprocess.PIPE
    )
    assert stop.stderr is not None
    assert b"stopping the run of output" in stop.stderr.readline()
    runner.wait_for_signals_taken()
    (folder / "go").touch()
    code, output = runner.end()
    stop.communicate()
    assert (code, stop.returncode) == (9, 0)
    assert "The run was asked to start no more commands; `det runner run` with the same options continues it." in output
    assert states(folder) == {"N_1": {"work": "finished"}, "N_2": {"work": "finished"}}


def test_stop_now_kills_commands_that_ignore_signals(folder: Path, start: Start) -> None:
    (folder / "params.yaml").write_text(GRID.replace("echo", "trap '' TERM; echo"))
    runner = start()
    pids = runner.pids()
    assert main(["runner", "stop", "--now"]) == 0
    assert runner.end()[0] == 128 + signal.SIGTERM
    assert all(is_gone(pid) for pid in pids)


def test_a_program_among_several_commands_saves_its_work_after_sigterm(folder: Path, start: Start) -> None:
    (folder / "save.py").write_text(
        "import pathlib, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (signal.sigtimedwait([], 0.2), pathlib.Path('saved').touch(), sys.exit(0)))\n"
        "pathlib.Path('ready').touch()\n"
        "signal.pause()\n"
    )
    grid = f"resource: [0]\ntemplate:\n  work: 'true; {sys.executable} save.py; touch next'\n---\nn: [1]\n"
    (folder / "params.yaml").write_text(grid)
    runner = start()
    runner.wait_for_file("ready")
    assert main(["runner", "stop"]) == 0
    assert runner.end()[0] == 128 + signal.SIGTERM
    assert (folder / "saved").exists()
    assert not (folder / "next").exists()
    assert states(folder) == {"N_1": {"work": "failed"}}


def test_a_command_that_exits_with_0_after_sigterm_counts_as_failed(folder: Path, start: Start) -> None:
    (folder / "params.yaml").write_text(GRID.replace("echo", "trap 'exit 0' TERM; echo"))
    runner = start()
    runner.pids()
    assert main(["runner", "stop"]) == 0
    runner.end()
    assert states(folder) == {"N_1": {"work": "failed"}, "N_2": {"work": "failed"}}


def test_attach_prints_all_lines_and_returns_the_exit_code(runner: Runner, folder: Path) -> None:
    runner.pids()
    attached = attach(folder)
    assert attached.stdout is not None
    assert attached.stdout.readline() == "Orphan params: set()\n"
    (folder / "go").touch()
    code, output = runner.end()
    rest = attached.stdout.read()
    attached.communicate()
    assert code == attached.returncode == 0
    assert f"Orphan params: set()\n{rest}" == output


def test_ctrl_c_in_attach_detaches_and_the_run_continues(runner: Runner, folder: Path) -> None:
    runner.pids()
    attached = attach(folder)
    assert attached.stdout is not None
    attached.stdout.readline()
    attached.send_signal(signal.SIGINT)
    _, message = attached.communicate()
    assert attached.returncode == 130
    assert message == "\ndetached; the run goes on. `det runner logs -f -o output` shows it again\n"
    (folder / "go").touch()
    assert runner.end()[0] == 0


def test_attach_reports_that_the_run_was_killed(runner: Runner, folder: Path) -> None:
    runner.pids()
    attached = attach(folder)
    assert attached.stdout is not None
    attached.stdout.readline()
    runner.kill()
    _, message = attached.communicate()
    assert attached.returncode == 9
    assert message == "the run was killed; `det runner run` with the same options continues it\n"


@pytest.mark.parametrize("verb", ["stop", "attach"])
def test_stop_and_attach_without_an_output_are_errors(
    verb: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["runner", verb]) == 3
    assert capfd.readouterr().err == "det: there is no output output\n"


def test_stop_after_the_end_of_a_run_is_an_error(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    run("resource: [0]\ntemplate: {a: 'true'}\n---\nn: 1\n")
    assert main(["runner", "stop"]) == 7
    assert capfd.readouterr().err == ("det: no run uses output; `det runner status` prints how its tasks ended\n")


def test_attach_after_the_end_of_a_run_prints_its_lines_and_returns_its_exit_code(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    code, lines = run("resource: [0]\ntemplate: {a: 'false'}\n---\nn: 1\n")
    assert main(["runner", "attach"]) == code == 1
    assert capfd.readouterr().out.splitlines() == lines


def test_retry_runs_only_failed_tasks(run: Run, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grid = "resource: [0]\ntemplate: {a: 'echo {n} >> ran', b: '[ -e ok ] || [ {n} != 2 ]'}\n---\nn: [1, 2]\n"
    assert run(grid, "-c", "a")[0] == 0
    (folder / "output" / "N_1" / "stat").write_text("a: running\n")
    assert run(grid.replace("[1, 2]", "[2, 3]"))[0] == 1
    (folder / "params.yaml").write_text(grid.replace("[1, 2]", "[1, 2, 3, 4]"))
    (folder / "ok").touch()
    assert main(["runner", "retry"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(("START", "SKIP"))] == [
        "SKIP    a: 1/ 1, output/N_2",
        "START   gpu: 0, b: 1/ 1, output/N_2",
    ]
    assert (folder / "ran").read_text().split() == ["1", "2", "3"]
    assert main(["runner", "retry"]) == 0
    assert capfd.readouterr().out.splitlines()[1] == "Tasks: 0, commands to run: 0"
    assert states(folder)["N_1"] == {"a": "running"}


def test_stop_sends_no_signal_to_a_run_of_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    with PidLock(tmp_path / ".runner.lock"):
        monkeypatch.undo()
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process of this machine gets a signal"))
        assert main(["runner", "stop", "-o", str(tmp_path)]) == 7
    assert f"(process {os.getpid()}) is on node7; end it there" in capsys.readouterr().err
