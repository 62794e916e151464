"""A trial class as real processes against a small master: paused, resumed, and over two slots.
``tests/e2e/test_pause.py`` and ``tests/e2e/launchers/test_pause.py`` cover the same with a real master in every run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.compiler import python_path
from tests.support.fake_master import serving, task_environment
from tests.support.free_ports import free_port

pytestmark = [pytest.mark.torch, pytest.mark.long]

DIGITS = Path(__file__).parents[3] / "examples" / "digits"


@pytest.fixture
def start(tmp_path):
    """Returns a function that starts one attempt of the digits trial. ``steps``: its number of batches."""
    for path in DIGITS.glob("*.py"):
        shutil.copy(path, tmp_path)

    def begin(master, *, slots=1, latest=None, steps=16, run_id=1):
        info = {"addresses": ["127.0.0.1"], "rank": 0, "slots": [slots]}
        master.on("GET", "/rendezvous", (200, {"rendezvousInfo": info}))
        hparams = {"global_batch_size": 16, "learning_rate": 0.05, "hidden": 16, "dropout": 0.25, "batches": steps}
        config = {
            "checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "store")},
            "searcher": {"name": "single", "metric": "validation_loss", "max_length": {"batches": steps}},
            "min_validation_period": {"batches": 7},
            "scheduling_unit": 1,
            "optimizations": {"aggregation_frequency": 2},
        }
        environ = {
            **os.environ,
            **task_environment(master, tmp_path),
            "DET_ENTRYPOINT_JSON": json.dumps("model_def:DigitsTrial"),
            "DET_TASK_PYTHON": sys.executable,
            "DET_HPARAMS": json.dumps(hparams),
            "DET_EXPERIMENT_CONFIG": json.dumps(config),
            "DET_SLOT_IDS": json.dumps(list(range(slots))),
            "DET_TRIAL_RUN_ID": str(run_id),
            "DET_ALLOCATION_KEY": "ab" * 32,
            "INTER_TRAIN_PROCESS_COMM_PORT_1": "0" if slots == 1 else str(free_port()),
            "C10D_PORT": str(free_port()),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": python_path(),
        }
        if latest:
            environ["DET_LATEST_CHECKPOINT"] = latest
        return subprocess.Popen(
            [sys.executable, "-m", "determined.exec.run_task"],
            env=environ,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return begin


def finish(child):
    out, _ = child.communicate(timeout=360)
    assert child.returncode == 0, out
    return next((line.split()[-1] for line in out.splitlines() if "final parameters" in line), None)


def reports(master):
    return {
        (body["group"], body["metrics"]["stepsCompleted"]): body["metrics"]["metrics"]["avgMetrics"]
        for body in master.bodies("/metrics")
    }


def test_a_paused_trial_resumes_with_the_same_result(start):
    with serving() as master:
        straight = finish(start(master))
        expected = reports(master)
        assert not master.bodies("/ack_preemption")
    assert straight is not None
    assert [step for group, step in expected if group == "training"] == list(range(1, 17))
    with serving() as master:
        child = start(master)
        master.wait_for("/metrics", 4)
        master.preempt.set()
        assert finish(child) is None
        assert len(master.bodies("/ack_preemption")) == 1
        latest = master.bodies("/checkpoints")[-1]
        first = reports(master)
    assert latest["metadata"]["steps_completed"] < 16
    with serving() as master:
        assert finish(start(master, latest=latest["uuid"], run_id=2)) == straight
        second = reports(master)
    assert not first.keys() & second.keys()
    assert {**first, **second} == expected


def test_a_paused_trial_of_two_slots_resumes_with_the_same_result(start):
    with serving() as master:
        straight = finish(start(master, slots=2))
        expected = reports(master)
    assert straight is not None
    with serving() as master:
        child = start(master, slots=2)
        master.wait_for("/metrics", 3)
        master.preempt.set()
        assert finish(child) is None
        latest = master.bodies("/checkpoints")[-1]["uuid"]
        first = reports(master)
    with serving() as master:
        assert finish(start(master, slots=2, latest=latest, run_id=2)) == straight
        assert {**first, **reports(master)} == expected
