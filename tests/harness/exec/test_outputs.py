"""A trial's outputs: put back before the entrypoint, kept after it, whatever its end."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.exec.test_pausable import Boot
from tests.support.fake_master import serving, task_environment
from tests.support.object_stores import s3_store
from tests.support.waiting import wait_until

from determined.exec.outputs import Outputs
from determined.storage.directory import DirectoryStorage
from determined_launch import end_request
from determined_launch.environment import TaskFacts


@pytest.fixture
def master():
    with serving() as server:
        info = {"addresses": ["127.0.0.1"], "rank": 0, "slots": [1]}
        server.on("GET", "/rendezvous", (200, {"rendezvousInfo": info}))
        yield server


class Trial:
    """Attempts of one trial, each in a work folder of its own."""

    def __init__(self, master, folder: Path, storage=None, **config) -> None:
        self.master, self.folder, self.attempt = master, folder, 0
        self.storage = storage or {"type": "directory", "container_path": f"{folder}/checkpoints"}
        self.config = {"checkpoint_storage": self.storage, "outputs": ["runs"], **config}
        self.latest = ""

    def run(self, entrypoint, **more: str) -> subprocess.CompletedProcess[str]:
        self.attempt += 1
        self.work = self.folder / str(self.attempt)
        (self.work / "workdir").mkdir(parents=True, exist_ok=True)
        variables = task_environment(
            self.master,
            self.work,
            DET_WORKDIR=str(self.work / "workdir"),
            DET_ENTRYPOINT_JSON=json.dumps(entrypoint),
            DET_EXPERIMENT_CONFIG=json.dumps(self.config),
            **({"DETENT_LATEST_OUTPUTS": self.latest} if self.latest else {}),
            **more,
        )
        argv = [sys.executable, "-m", "determined.exec.run_task"]
        environ = {**os.environ, "DET_TASK_PYTHON": sys.executable, **variables}
        done = subprocess.run(
            argv, env=environ, cwd=self.work / "workdir", capture_output=True, text=True, timeout=60, check=False
        )
        if self.reported:
            self.latest = self.reported[-1]["uuid"]
        return done

    @property
    def reported(self):
        return self.master.bodies("/checkpoints")

    def stored(self) -> DirectoryStorage:
        return DirectoryStorage(self.folder / "checkpoints")


APPEND = "mkdir -p runs; echo {} >> runs/a.txt; exit {}"


def test_outputs_of_a_failed_attempt_are_there_in_the_next_one(master, tmp_path):
    trial = Trial(master, tmp_path)
    done = trial.run(APPEND.format("one", 3))
    assert done.returncode == 3
    assert "INFO: determined: outputs: runs kept: 1 file, 4 bytes" in done.stdout
    done = trial.run(APPEND.format("two", 0))
    assert (done.returncode, done.stderr) == (0, "")
    assert (trial.work / "workdir" / "runs" / "a.txt").read_text() == "one\ntwo\n"
    assert trial.stored().read(trial.latest, "runs/a.txt") == b"one\ntwo\n"
    body = trial.reported[-1]
    assert (body["role"], body["state"], body["metadata"]) == (
        "outputs",
        "STATE_COMPLETED",
        {"steps_completed": 0, "outputs": ["runs"]},
    )
    assert body["resources"]["runs/a.txt"] == "8"


def test_outputs_that_no_attempt_changed_are_not_stored_again(master, tmp_path):
    trial = Trial(master, tmp_path)
    trial.run("true")
    assert trial.reported == []
    trial.run(APPEND.format("one", 0))
    done = trial.run("cat runs/a.txt")
    assert (len(trial.reported), len(list(trial.stored().root.iterdir()))) == (1, 1)
    assert done.stdout.endswith("one\n")
    trial.run("rm runs/a.txt")
    assert "runs/a.txt" not in trial.reported[-1]["resources"]


def test_an_attempt_that_a_signal_ends_keeps_its_outputs_and_ends_by_the_signal(master, tmp_path):
    done = Trial(master, tmp_path).run("mkdir runs; echo a > runs/a; (sleep 60; echo late >> runs/a) & kill -9 $$")
    assert done.returncode == -9
    assert "kept: 1 file, 2 bytes" in done.stdout


def test_outputs_that_cannot_be_kept_are_an_error_line_and_change_no_exit_code(master, tmp_path):
    trial = Trial(master, tmp_path)
    done = trial.run("mkdir runs; truncate -s 8T runs/huge; mkfifo runs/pipe; ln -s /etc runs/etc")
    assert done.returncode == 0
    assert (
        "ERROR: determined: outputs: the outputs of this attempt are not kept: they have 8,796,093,022,208"
        in done.stdout
    )
    assert "WARNING: determined: outputs: not kept: runs/etc is a link to /etc" in done.stdout
    assert "WARNING: determined: outputs: not kept: runs/pipe is a pipe" in done.stdout
    assert (trial.reported, list(trial.stored().root.iterdir())) == ([], [])


def test_more_files_than_the_bound_are_an_error_line(master, tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    for name in "abc":
        (tmp_path / "runs" / name).touch()
    environ = task_environment(master, tmp_path, DET_WORKDIR=str(tmp_path))
    config = json.loads(environ["DET_EXPERIMENT_CONFIG"]) | {"outputs": ["runs"]}
    found = Outputs.of(config, environ, TaskFacts.from_environment(environ), sys.executable, rank=0)
    assert found is not None
    few = replace(found, most=2)
    few.keep(few.restore())
    assert "ERROR: determined: outputs: the outputs of this attempt are not kept: there are more than 2 files" in (
        capsys.readouterr().out
    )
    assert not (tmp_path / "checkpoints").exists()


def test_outputs_that_the_master_refuses_leave_no_files(master, tmp_path):
    master.on("POST", "/checkpoints", (403, {"error": {"code": 7, "reason": "Forbidden", "error": "another attempt"}}))
    trial = Trial(master, tmp_path)
    done = trial.run(APPEND.format("one", 0))
    assert "ERROR: determined: outputs: the outputs of this attempt are not kept: the master does not" in done.stdout
    assert list(trial.stored().root.iterdir()) == []


def test_an_attempt_whose_outputs_cannot_be_put_back_does_not_start(master, tmp_path):
    trial = Trial(master, tmp_path)
    trial.latest = "00000000-0000-4000-8000-000000000001"
    done = trial.run("echo started")
    assert done.returncode == 1
    assert "started" not in done.stdout
    assert "determined: checkpoint 00000000-0000-4000-8000-000000000001 is not in" in done.stderr


def test_a_container_that_is_not_the_first_keeps_nothing(master, tmp_path):
    info = {"addresses": ["127.0.0.1", "127.0.0.2"], "rank": 1, "slots": [1, 1]}
    master.on("GET", "/rendezvous", (200, {"rendezvousInfo": info}))
    trial = Trial(master, tmp_path)
    assert trial.run(APPEND.format("one", 0)).returncode == 0
    assert trial.reported == []


def test_a_paused_script_keeps_its_outputs_after_its_acknowledgement(master, tmp_path):
    script = "mkdir runs; trap 'echo saved > runs/state; exit' USR1; touch ready; while :; do sleep 0.05; done"
    with Boot(master, tmp_path, script, outputs=["runs"]) as boot:
        boot.pause()
        assert boot.end() == 0
    assert "outputs: runs kept: 1 file, 6 bytes" in boot.output
    assert [body["role"] for body in master.bodies("/checkpoints")] == ["outputs"]


@pytest.mark.budget(15, "starts an object store")
def test_outputs_in_a_bucket_are_kept_by_the_python_of_the_task(master, tmp_path):
    with s3_store() as store:
        trial = Trial(master, tmp_path, store.config)
        assert "runs kept: 1 file" in trial.run(APPEND.format("one", 1), **store.environ).stdout
        assert trial.run("cat runs/a.txt; exit 1", **store.environ).stdout.endswith("one\n")
        assert len(trial.reported) == 1


def test_a_script_that_is_killed_through_the_fifo_keeps_its_outputs(master, tmp_path):
    script = "mkdir runs; echo a > runs/a; touch ready; trap '' TERM; while :; do sleep 0.05; done"
    with Boot(master, tmp_path, script, outputs=["runs"]) as boot:
        wait_until((tmp_path / "ready").exists, what="the script is ready")
        wait_until(lambda: end_request.send(str(tmp_path / end_request.FIFO)), what="the task listens")
        assert boot.process.wait(timeout=30) == -9
    assert "outputs: runs kept: 1 file, 2 bytes" in boot.output
    assert json.loads((tmp_path / "kept-outputs.json").read_text()) == ["runs"]


LITTLE_TIME = "from determined_launch import end_request; end_request.STORE_SECONDS = 0.5"


def test_outputs_that_take_too_long_after_a_kill_are_given_up(master, tmp_path):
    master.on("POST", "/checkpoints", (502, {"error": {"code": 14, "reason": "", "error": "away"}}))
    script = "mkdir runs; echo a > runs/a; touch ready; while :; do sleep 0.05; done"
    with Boot(master, tmp_path, script, outputs=["runs"], setup=LITTLE_TIME) as boot:
        wait_until((tmp_path / "ready").exists, what="the script is ready")
        wait_until(lambda: end_request.send(str(tmp_path / end_request.FIFO)), what="the task listens")
        assert boot.process.wait(timeout=30) == -9
    assert "ERROR: determined: outputs: the outputs of this attempt are not kept: the attempt was killed" in boot.output


SIGNAL_WHILE_KEEPING = """
import os, signal
from determined.exec.outputs import Outputs
keep = Outputs.keep
def interrupted(self, before):
    os.kill(os.getpid(), signal.SIGTERM)
    keep(self, before)
Outputs.keep = interrupted
"""


def test_a_signal_while_outputs_are_kept_loses_neither_them_nor_the_exit_code(master, tmp_path):
    with Boot(
        master, tmp_path, "mkdir runs; echo a > runs/a; exit 3", outputs=["runs"], setup=SIGNAL_WHILE_KEEPING
    ) as boot:
        assert boot.process.wait(timeout=30) == 3
    assert "outputs: runs kept: 1 file, 2 bytes" in boot.output
