"""A full disk under a whole cluster: a running trial waits, then completes with each report stored once."""

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_cluster import LiveCluster, environment, live_cluster, python
from tests.support.live_models import SCRIPT
from tests.support.live_trials import Experiment, create
from tests.support.small_disk import SmallDisk, disk_fixture
from tests.support.waiting import wait_until

pytestmark = pytest.mark.budget(20, "fills disks under a real cluster")

STEPS, GATE = 120, 20
TRAINING = f"""
import determined
from determined import core
from gates import gate

with core.init() as context:
    for step in range(1, {STEPS} + 1):
        if step == {GATE}:
            gate("full", context)
        print(f"line {{step}} " + "y" * 20_000, flush=True)
        context.train.report_training_metrics(step, {{"loss": 1 / step, "note": str(step) * 20_000}})
    context.train.report_validation_metrics({STEPS}, {{"loss": 0.5}})
    print("all reported", flush=True)
"""


disk = disk_fixture("512m")


@pytest.fixture
def cluster(disk: SmallDisk) -> Iterator[LiveCluster]:
    """Yields a cluster with master, agent, logs and run folders on the small disk, as with `det up`."""
    with live_cluster(disk.path / "cluster") as created:
        yield created


def health(cluster: LiveCluster) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=10)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def reported_steps(experiment: Experiment, group: str) -> list[int]:
    stream = experiment.cluster.session.stream(
        f"/api/v1/trials/metrics/{group}_metrics", {"trialIds": [experiment.trial_id]}
    )
    return [int(report["totalBatches"]) for page in stream for report in page["metrics"]]


def log_steps(experiment: Experiment) -> list[int]:
    return [int(line.split()[1]) for line in experiment.log if line.startswith("line ")]


def test_a_trial_waits_while_the_disk_is_full(cluster: LiveCluster, disk: SmallDisk, tmp_path: Path):
    experiment = create(
        cluster, SCRIPT, tmp_path, files={"train.py": TRAINING}, held=("full",), entrypoint="python3 train.py"
    )
    experiment.at_gate("full")
    disk.fill()
    experiment.open_gate("full")
    wait_until(lambda: health(cluster)[0] == 503, what="/health answers 503")
    assert health(cluster)[1]["storage"][0] == {"name": "data", "status": "full"}
    # The trial goes on until nothing more fits on the disk, and then waits.
    wait_until(lambda: cluster.session.get("/detent/storage")["storage"][0]["freeBytes"] < 1 << 16, what="a full disk")
    before = reported_steps(experiment, "training")
    assert len(before) < STEPS
    assert experiment.state == "RUNNING"
    disk.free()
    experiment.ended(within=60)
    assert reported_steps(experiment, "training") == list(range(1, STEPS + 1))
    assert reported_steps(experiment, "validation") == [STEPS]
    assert log_steps(experiment) == list(range(1, STEPS + 1))
    assert experiment.progress["runId"] == 1, "it was never restarted"
    text = (cluster.folder / "master.log").read_text()
    assert "Traceback" not in text
    assert text.count("cannot write to the disk of") == 1
    wait_until(lambda: health(cluster)[0] == 200, what="/health answers 200 again")


def test_a_master_that_is_started_on_a_full_disk_says_so_in_one_line(disk: SmallDisk, tmp_path: Path):
    (disk.path / "data").mkdir()
    disk.fill()
    argv = python("determined_master", "--data", str(disk.path / "data"), "--port", "0")
    done = subprocess.run(argv, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "the disk is full" in done.stderr


@pytest.mark.long
def test_several_trials_wait_each_time_the_disk_is_full(cluster: LiveCluster, disk: SmallDisk, tmp_path: Path):
    cluster.start_agent("agent-2", slots=2)
    experiments = [
        create(
            cluster,
            SCRIPT,
            tmp_path / str(number),
            files={"train.py": TRAINING},
            held=("full",),
            entrypoint="python3 train.py",
        )
        for number in range(3)
    ]
    for experiment in experiments:
        experiment.at_gate("full")
    for experiment in experiments:
        disk.fill()
        experiment.open_gate("full")
        wait_until(lambda: health(cluster)[0] == 503, what="/health answers 503")
        disk.free()
        wait_until(lambda: health(cluster)[0] == 200, what="/health answers 200 again")
    for experiment in experiments:
        experiment.ended(within=90)
        assert reported_steps(experiment, "training") == list(range(1, STEPS + 1))
        assert log_steps(experiment) == list(range(1, STEPS + 1))
        assert experiment.progress["runId"] == 1
    print(
        f"{len(experiments)} trials, {len(experiments)} times a full disk, {len(experiments) * STEPS} reports, none lost"
    )
