"""A network that loses answers, and one that is cut for longer than the reconnect window."""

import pytest
from tests.support import live_processes
from tests.support.live_cluster import live_cluster
from tests.support.live_models import MODELS
from tests.support.live_proxy import proxy
from tests.support.live_trials import create
from tests.support.waiting import wait_until

from determined.client.session import ONCE, Session
from determined.errors import Unauthenticated

pytestmark = [pytest.mark.e2e, pytest.mark.torch]


def test_a_trial_whose_every_third_answer_is_lost_ends_with_the_same_bits(tmp_path, same_as_straight, moments):
    """Requests are processed but their answers are lost, so each is sent again."""
    with live_cluster(tmp_path / "cluster", slots=0) as cluster, proxy(cluster.port, lose_every=3) as bad:
        cluster.start_agent(master=bad.url, is_warm=True)
        batch = moments.randrange(2, 38)
        experiment = create(cluster, MODELS["digits"], tmp_path, gates=(f"train-{batch}",))
        experiment.at_gate(f"train-{batch}")
        experiment.pause()
        experiment.do("activate")
        same_as_straight(experiment)
        assert bad.lost > 20
        assert experiment.trials[0]["restarts"] == 0


@pytest.mark.long  # tests/integration/test_experiments.py frees and fences its trial
def test_a_trial_of_an_agent_cut_off_beyond_its_window_continues_elsewhere(tmp_path, same_as_straight):
    """Its trial continues elsewhere from the checkpoint. The old attempt is fenced, and ended when the agent
    reconnects."""
    settings = {"agent_reconnect_wait": 0.5, "heartbeat_seconds": 0.3}
    with live_cluster(tmp_path / "cluster", slots=0, **settings) as cluster, proxy(cluster.port) as cable:
        cluster.start_agent("agent-1", master=cable.url, is_warm=True)
        experiment = create(cluster, MODELS["digits"], tmp_path, held=("train-17",))
        experiment.at_gate("train-17")
        old = experiment.worker
        variables = live_processes.environ_of(old)
        cable.go_dark()
        cluster.start_agent("agent-2", is_warm=True)
        wait_until(lambda: experiment.progress["runId"] == 2, what="the second attempt")
        assert old in experiment.processes  # its agent cannot receive the order to end it
        with Session(cluster.url, allocation_token=variables["DET_SESSION_TOKEN"], retry=ONCE) as session:
            for path, body in stale_posts(experiment.trial_id, variables):
                with pytest.raises(Unauthenticated, match="fenced"):
                    session.post(path, body)
        cable.go_light()
        wait_until(lambda: old not in experiment.processes, what="the old attempt is ended")
        experiment.open_gate("train-17")
        same_as_straight(experiment)
        assert {report["trialRunId"] for report in experiment.reports("training")} == {1, 2}
        assert experiment.trials[0]["restarts"] == 0


def stale_posts(trial_id, variables):
    metrics = {"trialId": trial_id, "trialRunId": 1, "stepsCompleted": 18, "metrics": {"avgMetrics": {"loss": 1.0}}}
    allocation = variables["DET_ALLOCATION_ID"]
    return [
        (f"/api/v1/trials/{trial_id}/metrics", {"metrics": metrics, "group": "training"}),
        (f"/api/v1/trials/{trial_id}/progress", {"progress": 0.5}),
        (
            "/api/v1/checkpoints",
            {
                "uuid": "00000000-0000-4000-8000-000000000001",
                "taskId": variables["DET_TASK_ID"],
                "allocationId": allocation,
            },
        ),
        (f"/api/v1/allocations/{allocation}/signals/ack_preemption", {}),
    ]
