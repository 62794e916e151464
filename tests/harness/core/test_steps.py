"""The step file, and the stacks of all threads after a signal."""

import os
import signal
import struct
import subprocess
import sys
import time

import pytest
from tests.support.fake_master import serving, task_environment

from determined import core
from determined.core import _steps


def count(path):
    return struct.unpack("<Q", path.read_bytes())[0]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Yields an empty step file, as the launch layer creates it. Watching ends with the test."""
    path = tmp_path / "rank-0"
    path.touch()
    monkeypatch.setenv("DET_STEP_FILE", str(path))
    yield path
    _steps.use({})


def test_reports_and_calls_of_should_preempt_are_steps(file, tmp_path, monkeypatch):
    with serving() as master:
        for name, value in task_environment(master, tmp_path).items():
            monkeypatch.setenv(name, value)
        with core.init() as context:
            assert file.read_bytes() == b""
            context.train.report_training_metrics(1, {"loss": 1.0})
            assert count(file) == 1
            context.preempt.should_preempt()
            context.train.report_validation_metrics(1, {"loss": 1.0})
            context.train.report_metrics("own", 1, {"x": 1})
            assert count(file) == 4
        os.utime(file, (0, 0))
        with core.init() as context:
            context.preempt.should_preempt()
        assert count(file) == 5  # a second context of the process continues the count
        assert time.time() - file.stat().st_mtime < 60


def test_steps_are_counted_off_the_cluster(file):
    with core.init() as context:
        context.preempt.should_preempt()
        context.train.report_training_metrics(1, {"loss": 1.0})
    assert count(file) == 2


@pytest.mark.parametrize("path", [None, "/nowhere/rank-0"])
def test_without_a_step_file_steps_are_not_counted(monkeypatch, path):
    monkeypatch.delenv("DET_STEP_FILE", raising=False)
    if path:
        monkeypatch.setenv("DET_STEP_FILE", path)
    with core.init() as context:
        assert not _steps.is_watched()
        assert not context.preempt.should_preempt()


def test_counting_a_step_takes_microseconds(file):
    """One step takes one or two microseconds. The limit allows for a busy machine but not for a flush."""
    _steps.use({"DET_STEP_FILE": str(file)})
    begin = time.perf_counter()
    for _ in range(2000):
        _steps.mark()
    assert (time.perf_counter() - begin) / 2000 < 100e-6
    assert count(file) == 2000


@pytest.mark.torch
def test_each_batch_of_the_trainer_is_a_step(file, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from determined import pytorch

    class Trial(pytorch.PyTorchTrial):
        def __init__(self, context):
            self.context = context
            self.model = context.wrap_model(torch.nn.Linear(1, 1))
            self.counts = []

        def build_training_data_loader(self):
            return pytorch.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 1)), batch_size=1)

        build_validation_data_loader = build_training_data_loader

        def train_batch(self, batch, epoch_idx, batch_idx):
            self.counts.append(count(file) if file.read_bytes() else 0)
            return self.model(batch[0]).sum()

        def evaluate_batch(self, batch, batch_idx):
            return {"validation_loss": 1.0}

    config = {"checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "store")}}
    monkeypatch.setattr(core.DummyPreemptContext, "should_preempt", lambda *_, **__: False)  # so that it counts no step
    with pytorch.init(hparams={}, exp_conf=config) as context:
        trial = Trial(context)
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(6))
    assert trial.counts == [0, 1, 2, 3, 4, 5]
    assert count(file) >= 6 + 8


STACKS = """
import threading, sys
from determined import core
def waiting_beside(): threading.Event().wait()
threading.Thread(target=waiting_beside, daemon=True).start()
with core.init():
    print("ready", flush=True)
    sys.stdin.readline()
print("went on", flush=True)
"""


def test_sigusr1_prints_the_stacks_of_all_threads():
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    child = subprocess.Popen(
        [sys.executable, "-c", STACKS],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGUSR1)
    out, err = child.communicate("\n", timeout=90)
    assert (out, child.returncode) == ("went on\n", 0)
    assert "waiting_beside" in err
    assert "Current thread" in err
