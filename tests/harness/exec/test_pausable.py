"""A plain script that its trial's pause asks to save: signal, grace, acknowledgement and exit code."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.fake_master import serving, task_environment
from tests.support.waiting import wait_until

from determined.exec.pausable import Pause
from determined_launch import process_table

LOOP = "trap 'echo saved > state; exit {code}' USR1; touch ready; while :; do sleep 0.05; done"
PYTHON_WITH_HANDLER = """
import pathlib, signal, sys, time
{before}
def save(*_):
    pathlib.Path("state").write_text("saved")
    sys.exit(0)
signal.signal(signal.SIG{name}, save)
{after}
pathlib.Path("ready").touch()
while True:
    time.sleep(0.05)
"""
CORE_API = """
import pathlib, time
from determined import core
with core.init() as context:
    pathlib.Path("ready").touch()
    while not context.preempt.should_preempt():
        time.sleep(0.02)
    time.sleep(0.3)
    pathlib.Path("state").write_text("saved")
"""


@pytest.fixture
def master():
    with serving() as server:
        yield server


class Boot:
    """The start-up program of a task, with ``pause`` in its configuration."""

    def __init__(
        self, master, folder: Path, entrypoint, pause=None, *, addresses=("127.0.0.1",), setup="", **more
    ) -> None:
        self.master, self.folder = master, folder
        storage = {"type": "directory", "container_path": f"{folder}/checkpoints"}
        config = {"checkpoint_storage": storage, "pause": {"signal": "SIGUSR1", "grace": 30, **(pause or {})}, **more}
        facts = {"addresses": list(addresses), "rank": 0, "slots": [1] * len(addresses)}
        master.on("GET", "/rendezvous", (200, {"rendezvousInfo": facts}))
        variables = task_environment(
            master,
            folder,
            DET_ENTRYPOINT_JSON=json.dumps(entrypoint),
            DET_EXPERIMENT_CONFIG=json.dumps(config),
        )
        with (folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"{setup}\nimport sys; from determined.exec import run_task; sys.exit(run_task.main())",
                ],
                env={**os.environ, **variables},
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> "Boot":
        return self

    def __exit__(self, *_: object) -> None:
        # An agent's shim ends what a script leaves behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """Asks the trial to leave once its script is ready."""
        wait_until((self.folder / "ready").exists, what="the script is ready")
        self.master.preempt.set()

    def end(self) -> int:
        return self.process.wait(timeout=30)

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    @property
    def acknowledged(self) -> int:
        return len(self.master.bodies("/ack_preemption"))


@pytest.mark.parametrize("code", [0, 7])
def test_a_script_that_ends_after_the_signal_has_not_finished_whatever_its_code_is(master, tmp_path, code):
    with Boot(master, tmp_path, LOOP.format(code=code)) as boot:
        boot.pause()
        assert boot.end() == 0
    assert boot.acknowledged == 1
    assert (tmp_path / "state").read_text() == "saved\n"
    assert f"after SIGUSR1 with code {code}; the trial continues later" in boot.output


def test_a_script_without_a_handler_ends_by_the_signal_and_has_not_finished(master, tmp_path):
    with Boot(master, tmp_path, "touch ready; while :; do sleep 0.05; done") as boot:
        boot.pause()
        assert boot.end() == 0
    assert boot.acknowledged == 1
    assert "after SIGUSR1 with signal 10 (SIGUSR1)" in boot.output


def test_a_script_that_ended_with_0_before_the_signal_is_complete(master, tmp_path):
    with Boot(master, tmp_path, "true; exit 0") as boot:
        assert boot.end() == 0
    assert boot.acknowledged == 0


@pytest.mark.parametrize(("entrypoint", "code"), [("true; exit 9", 9), ("kill -SEGV $$; true", -11)])
def test_a_script_that_fails_without_a_pause_ends_the_task_in_the_same_way(master, tmp_path, entrypoint, code):
    with Boot(master, tmp_path, entrypoint) as boot:
        assert boot.end() == code
    assert boot.acknowledged == 0


def test_a_script_that_goes_on_is_ended_after_the_grace_with_all_that_it_started(master, tmp_path):
    line = "trap '' USR1; (trap '' USR1; echo $BASHPID > child; touch ready; sleep 600; true) & wait; wait"
    with Boot(master, tmp_path, ["bash", "-c", line], {"grace": 1}) as boot:
        boot.pause()
        assert boot.end() == 0
    assert boot.acknowledged == 1
    assert "still ran 1 s after SIGUSR1 (pause.grace) and is ended" in boot.output
    left = process_table.find(int((tmp_path / "child").read_text()))
    assert left is None or not left.is_alive


@pytest.mark.parametrize("name", ["USR1", "TERM"])
def test_the_signal_goes_to_the_script_and_not_to_the_shell_around_it(master, tmp_path, name):
    (tmp_path / "train.py").write_text(PYTHON_WITH_HANDLER.format(name=name, before="", after=""))
    line = f"cd . && {sys.executable} train.py; echo after > shell"
    with Boot(master, tmp_path, line, {"signal": f"SIG{name}"}) as boot:
        boot.pause()
        assert boot.end() == 0
    assert (tmp_path / "state").read_text() == "saved"
    assert (tmp_path / "shell").exists()


def test_a_handler_inherited_by_forked_processes_runs_once(master, tmp_path):
    fork = "import os; [os.fork() for _ in range(2)]"
    script = PYTHON_WITH_HANDLER.format(name="USR1", before="", after=fork)
    script = script.replace('write_text("saved")', 'open("a").write("saved ")')
    (tmp_path / "train.py").write_text(script)
    with Boot(master, tmp_path, [sys.executable, "train.py"]) as boot:
        boot.pause()
        boot.end()
    assert (tmp_path / "state").read_text() == "saved "


def test_a_script_with_the_core_api_saves_as_without_pause(master, tmp_path):
    """Neither it nor the shell around it gets the signal, of which both would die."""
    (tmp_path / "train.py").write_text(CORE_API)
    with Boot(
        master, tmp_path, f"cd . && {sys.executable} train.py; echo after > shell", {"signal": "SIGUSR2"}
    ) as boot:
        boot.pause()
        assert boot.end() == 0
    assert (tmp_path / "state").read_text() == "saved"
    assert (tmp_path / "shell").exists()
    assert boot.acknowledged == 2


def test_the_core_api_leaves_the_handler_of_a_script_in_place(master, tmp_path):
    after = "from determined import core; opened = core.init(); opened.__enter__()"
    (tmp_path / "train.py").write_text(PYTHON_WITH_HANDLER.format(name="USR1", before="", after=after))
    with Boot(master, tmp_path, [sys.executable, "train.py"]) as boot:
        boot.pause()
        assert boot.end() == 0
    assert (tmp_path / "state").read_text() == "saved"


def test_a_script_that_failed_because_its_peers_have_left_has_not_failed(master, tmp_path):
    master.on("GET", "/signals/preemption", lambda _: (200, {"preempt": (tmp_path / "left").exists()}))
    line = "while [ ! -e go ]; do sleep 0.02; done; touch left; exit 1"
    with Boot(master, tmp_path, line, addresses=("127.0.0.1", "127.0.0.2")) as boot:
        # the poll in progress has been answered, and the next one waits in the master
        master.wait_for("/signals/preemption")
        (tmp_path / "go").touch()
        assert boot.end() == 0
    assert boot.acknowledged == 1


def test_a_script_ends_with_the_process_that_started_it(master, tmp_path):
    with Boot(master, tmp_path, "echo $$ > pid; touch ready; while :; do sleep 0.05; done") as boot:
        wait_until((tmp_path / "ready").exists)
        boot.process.kill()
        boot.end()
        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: (left := process_table.find(pid)) is None or not left.is_alive, within=5)


def test_the_script_reads_the_name_of_the_signal_in_its_environment(master, tmp_path):
    with Boot(master, tmp_path, "echo signal $DET_PAUSE_SIGNAL", {"signal": "SIGTERM"}) as boot:
        assert boot.end() == 0
    assert boot.output == "signal SIGTERM\n"


def test_a_configuration_without_the_section_has_no_pause_and_an_empty_one_the_defaults():
    assert Pause.of({}) is None
    assert Pause.of({"pause": None}) is None
    assert Pause.of({"pause": {}}) == Pause("SIGUSR1", 60.0)
