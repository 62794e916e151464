"""Errors of users are reported where the user looks, end in the right state, and lose nothing."""

import math
import os
import subprocess

import pytest
from tests.support import live_processes
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create

from determined.client.session import ONCE, Session
from determined.errors import BadRequest, Forbidden

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("entrypoint", "text"),
    [
        (["no-such-program", "--x"], "no-such-program"),
        ("no-such-program --x", "no-such-program"),
        ("nowhere:Trial", "there is no module nowhere in"),
        ("gates:NoSuch", "gates has no class NoSuch"),
        ("gates:gated", "gates:gated is a function, not a trial class"),
        ("echo so far; kill -SEGV $$", "SIGSEGV"),
        ("exit 7", "code 7"),
    ],
)
def test_a_task_that_cannot_run_fails_with_its_reason(cluster, tmp_path, entrypoint, text):
    experiment = create(cluster, SCRIPT, tmp_path, entrypoint=entrypoint)
    experiment.ended("ERROR")
    log = "\n".join(experiment.log)
    assert text in log
    assert experiment.trials[0]["state"] == "STATE_ERROR"
    experiment.nothing_left()


def test_a_failing_startup_hook_aborts_the_trial(cluster, tmp_path):
    hook = "echo before the fall\nfalse\n"
    experiment = create(cluster, SCRIPT, tmp_path, files={"startup_hook__sh": hook})
    experiment.ended("ERROR")
    assert "before the fall" in experiment.log
    assert experiment.reports("training") == []


def test_a_trial_that_always_fails_is_restarted_max_restarts_times(cluster, tmp_path):
    """The trial is restarted max_restarts times and then fails. The lines of each attempt are kept."""
    experiment = create(cluster, SCRIPT, tmp_path, entrypoint="echo attempt; exit 3", max_restarts=2)
    experiment.ended("ERROR")
    assert experiment.log.count("attempt") == 3
    assert experiment.trials[0]["restarts"] == 2


def test_a_metric_that_is_not_a_number_is_kept_as_nan(cluster, tmp_path):
    """Its value is kept and can be read."""
    experiment = create(cluster, SCRIPT, tmp_path)
    experiment.ended()
    reports = experiment.reports("training")
    assert [report["totalBatches"] for report in reports] == [1, 2, 3]
    assert all(math.isnan(float(report["metrics"]["avg_metrics"]["not a number"])) for report in reports)


def test_a_report_for_another_trial_is_refused(cluster, tmp_path):
    """The other trial keeps its reports."""
    other = create(cluster, SCRIPT, tmp_path / "other")
    other.ended()
    experiment = create(cluster, SCRIPT, tmp_path / "mine", held=("step-0-1",))
    experiment.at_gate("step-0-1")
    environ = live_processes.environ_of(experiment.processes[0])
    body = {"group": "training", "metrics": {"trialRunId": 1, "stepsCompleted": 9, "metrics": {"avgMetrics": {}}}}
    with Session(cluster.url, allocation_token=environ["DET_SESSION_TOKEN"], retry=ONCE) as session:
        with pytest.raises(Forbidden, match=f"may not report for trial {other.trial_id}"):
            session.post(f"/api/v1/trials/{other.trial_id}/metrics", body)
        with pytest.raises(Forbidden):
            session.post(f"/api/v1/experiments/{other.id}/kill")
    assert [report["totalBatches"] for report in other.reports("training")] == [1, 2, 3]
    experiment.open_gate("step-0-1")
    experiment.ended()


SAVES = """
from determined import core

with core.init() as context:
    for step, size in ((1, 1000), (2, 8 << 20)):
        context.train.report_training_metrics(step, {"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "state").write_bytes(bytes(size))
"""


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may mount a disk of 4 MiB")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_checkpoint_disk_is_named_and_leaves_no_half_checkpoint(cluster, tmp_path, small_disk):
    """The error names the mount, no unfinished checkpoint is left, and the previous one stays complete."""
    experiment = create(
        cluster,
        SCRIPT,
        tmp_path,
        files={"saves__py": SAVES},
        entrypoint="python3 saves.py",
        checkpoint_storage={"type": "shared_fs", "host_path": str(small_disk)},
    )
    experiment.ended("ERROR")
    log = "\n".join(experiment.log)
    assert "No space left on device" in log
    assert str(small_disk) in log
    checkpoints = cluster.session.get(f"/api/v1/trials/{experiment.trial_id}/checkpoints")["checkpoints"]
    assert [(c["state"], c["metadata"]["steps_completed"]) for c in checkpoints] == [("STATE_COMPLETED", 1)]
    assert [path.name for path in small_disk.iterdir()] == [checkpoints[0]["uuid"]]
    assert (small_disk / checkpoints[0]["uuid"] / "state").read_bytes() == bytes(1000)
    assert [report["totalBatches"] for report in experiment.reports("training")] == [1, 2]


def test_all_mistakes_of_a_configuration_are_named_at_once(cluster, tmp_path):
    """Nothing is stored."""
    before = cluster.session.get("/api/v1/experiments")["pagination"]["total"]
    with pytest.raises(BadRequest) as caught:
        create(cluster, SCRIPT, tmp_path, searcher={"name": "single", "metrik": "loss"}, max_restarts=-1)
    text = str(caught.value)
    assert "metrik" in text
    assert "max_restarts" in text
    assert cluster.session.get("/api/v1/experiments")["pagination"]["total"] == before
