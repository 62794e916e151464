"""Reports of a task that died while the master was down are stored after its end."""

import pytest
from tests.support.live_cluster import live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

STEPS = 30
TRAINING = f"""
import os, signal
from determined import core
from gates import gate

with core.init() as context:
    context.train.report_training_metrics(1, {{"loss": 1.0}})
    gate("away", context)
    for step in range(2, {STEPS} + 1):
        context.train.report_training_metrics(step, {{"loss": 1 / step}})
    open(os.path.join(os.environ["GATES"], "died"), "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_reports_of_a_dead_attempt_are_stored_after_its_end(tmp_path):
    with live_cluster(tmp_path / "cluster") as cluster:
        experiment = create(
            cluster, SCRIPT, tmp_path, files={"train.py": TRAINING}, held=("away",), entrypoint="python3 train.py"
        )
        experiment.at_gate("away")
        trial_id = experiment.trial_id
        cluster.kill_master()
        experiment.open_gate("away")
        wait_until(lambda: (tmp_path / "gates" / "died").exists(), what="the task's death")
        cluster.start_master()
        experiment.ended("ERROR")
        stream = cluster.session.stream("/api/v1/trials/metrics/training_metrics", {"trialIds": [trial_id]})
        steps = [int(report["totalBatches"]) for page in stream for report in page["metrics"]]
        assert steps == list(range(1, STEPS + 1))
