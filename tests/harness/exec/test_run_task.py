"""The start-up program of a task: rendezvous, probe of the storage, and entrypoint."""

import json
import os
import subprocess
import sys

import pytest
from tests.support.fake_master import serving, task_environment

from determined.errors import DeterminedError
from determined.exec.run_task import build
from determined_launch import rendezvous
from determined_launch.environment import RendezvousFacts

ONE_SLOT = RendezvousFacts(("127.0.0.1",), 0, (1,))
TWO_SLOTS = RendezvousFacts(("127.0.0.1",), 0, (2,))


@pytest.mark.parametrize(
    ("entrypoint", "peers", "argv"),
    [
        ("model_def:T", ONE_SLOT, ["py", "-m", "determined.exec.harness", "model_def:T"]),
        ("a.b:T", TWO_SLOTS, ["py", "-m", "determined.launch.torch_distributed", "--", "--trial", "a.b:T"]),
        ("python3 train.py 'a b'", ONE_SLOT, ["sh", "-c", "python3 train.py 'a b'"]),
        (["./prog", "a b", ""], TWO_SLOTS, ["./prog", "a b", ""]),
        (["a:b"], ONE_SLOT, ["a:b"]),
    ],
)
def test_build_returns_the_command_of_each_kind_of_entrypoint(entrypoint, peers, argv):
    assert build(entrypoint, peers, "py") == argv


@pytest.mark.parametrize(
    ("python", "wanted", "layer", "message"),
    [
        (sys.executable, None, "torch_distributed", ""),
        (sys.executable, "horovod", "horovod", ""),
        ("/no/such/python", "horovod", "torch_distributed", "does not have horovod; using torch_distributed"),
        (sys.executable, "process", "torch_distributed", "process supports one slot only"),
    ],
)
def test_the_legacy_launcher_setting_chooses_the_layer(capsys, tmp_path, monkeypatch, python, wanted, layer, message):
    (tmp_path / "horovod").mkdir()  # enough for a Python to find a package of this name
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    argv = build("m:T", TWO_SLOTS, python, wanted)
    assert argv == [python, "-m", f"determined.launch.{layer}", "--", "--trial", "m:T"]
    *notes, command = capsys.readouterr().out.splitlines()
    assert "runs as: " in command
    assert len(notes) == bool(message)
    assert message in "".join(notes)
    assert build("m:T", ONE_SLOT, python, wanted) == [python, "-m", "determined.exec.harness", "m:T"]


@pytest.mark.parametrize("entrypoint", [None, "", " ", []])
def test_a_missing_entrypoint_is_an_error(entrypoint):
    with pytest.raises(DeterminedError, match="no entrypoint"):
        build(entrypoint, ONE_SLOT, "py")


@pytest.fixture
def master():
    with serving() as server:
        info = {"addresses": ["127.0.0.1"], "rank": 0, "slots": [1]}
        server.on("GET", "/rendezvous", (200, {"rendezvousInfo": info}))
        yield server


def boot(master, folder, entrypoint, **more):
    environ = {**os.environ, **task_environment(master, folder, DET_ENTRYPOINT_JSON=json.dumps(entrypoint), **more)}
    return subprocess.run(
        [sys.executable, "-m", "determined.exec.run_task"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=360,
        cwd=folder,
    )


def test_the_boot_step_writes_the_rendezvous_and_runs_the_entrypoint(master, tmp_path):
    done = boot(master, tmp_path, "echo $DET_TRIAL_ID; exit 9")
    assert (done.stdout, done.returncode) == ("3\n", 9)
    assert json.loads((tmp_path / "info" / "rendezvous.json").read_text()) == {
        "container_addrs": ["127.0.0.1"],
        "container_rank": 0,
        "container_slot_counts": [1],
    }
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_a_container_that_knows_its_rendezvous_sends_no_request(tmp_path):
    facts = RendezvousFacts(("127.0.0.7",), 0, (2,))
    rendezvous.write(facts, {"DET_RUN_DIR": str(tmp_path)})
    with serving() as master:
        done = boot(master, tmp_path, "true; exit 9")
        assert done.returncode == 9
        assert master.bodies("/rendezvous") == []
    assert rendezvous.read({"DET_RUN_DIR": str(tmp_path)}) == facts


@pytest.mark.parametrize(("entrypoint", "text"), [(["nosuch", "x"], "cannot start 'nosuch'"), ("nosuch x", "nosuch")])
def test_an_entrypoint_whose_program_does_not_exist_exits_with_127_and_names_it(master, tmp_path, entrypoint, text):
    done = boot(master, tmp_path, entrypoint)
    assert done.returncode == 127
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) == 1
    assert text in lines[0]


def test_the_boot_step_fails_if_the_checkpoint_storage_cannot_be_written(master, tmp_path):
    (tmp_path / "file").write_text("")
    config = {"checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "file")}}
    done = boot(master, tmp_path, ["true"], DET_EXPERIMENT_CONFIG=json.dumps(config))
    assert done.returncode == 1
    assert "cannot write in checkpoint storage" in done.stderr


@pytest.mark.torch
def test_the_boot_step_names_the_failed_import_of_a_trial_class(master, tmp_path):
    (tmp_path / "model_def.py").write_text("import nosuchmodule\n")
    done = boot(master, tmp_path, "model_def:T", DET_TASK_PYTHON=sys.executable)
    assert done.returncode == 1
    assert "model_def.py" in done.stderr
    assert "No module named 'nosuchmodule'" in done.stderr
