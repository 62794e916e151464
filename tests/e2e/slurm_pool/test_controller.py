"""A slurmctld that dies: a job that it loses, whose id it gives to somebody else's, and two minutes without it."""

import time
from collections.abc import Iterator

import pytest
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.slurm import Slurm, running_slurm
from tests.support.slurm_pool import slurm_pool
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.xdist_group("slurm that is killed"),
    pytest.mark.budget(300, "kills a Slurm of its own for two minutes"),
]

AWAY_SECONDS = 120.0
MAX_ANSWER_SECONDS = 0.05


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yields a Slurm whose controller the tests kill."""
    with running_slurm(tmp_path_factory.mktemp("s")) as running:
        yield running


@pytest.mark.parametrize("moment", ["submitted", "running"])
def test_a_pilot_that_slurmctld_loses_is_replaced_and_the_other_owner_of_its_id_is_left_alone(slurm, tmp_path, moment):
    state = slurm.folder / "state" / "job_state.new"
    state.mkdir()  # keeps slurmctld from storing its jobs
    with slurm_pool(tmp_path / "c", slurm, idle_timeout=3.0) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path, held=("step-0-2",))
        if moment == "running":
            experiment.at_gate("step-0-2")
        (job,) = wait_until(lambda: list(cluster.jobs), what="the pilot is submitted")
        slurm.kill_controller()
        state.rmdir()
        slurm.start_controller()
        if moment == "running":
            sockets = slurm.folder / "spool"
            wait_until(lambda: not list(sockets.glob(f"*/*_{job}.*")), what="the nodes have ended the lost job")
        foreign = slurm.command("sbatch", "--parsable", "--wrap", "sleep 600").strip()
        # One that was just submitted is submitted again at once, and may get its id before others do.
        assert moment == "submitted" or foreign == job
        experiment.open_gate("step-0-2")
        experiment.ended(within=120)
        assert cluster.restarts(experiment) == 0
        cluster.nothing_in_the_queue()
        queue = ("squeue", "--noheader", f"--jobs={foreign}", "--format=%T")
        assert slurm.command(*queue).strip() == "RUNNING"


def test_a_slurm_that_is_away_for_two_minutes_ends_nothing_and_blocks_nothing(slurm, tmp_path):
    with slurm_pool(tmp_path / "c", slurm) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path / "1", held=("step-0-2",))
        experiment.at_gate("step-0-2")
        slurm.kill_controller()
        waiting = create(cluster, MODELS["script"], tmp_path / "2")
        answers, until = [], time.monotonic() + AWAY_SECONDS
        cluster.session.get("/info")
        while time.monotonic() < until:
            began = time.monotonic()
            cluster.session.get("/info")
            answers.append(time.monotonic() - began)
            time.sleep(0.5)
        answers.sort()
        assert answers[len(answers) * 9 // 10] < MAX_ANSWER_SECONDS
        assert (experiment.state, waiting.state) == ("RUNNING", "QUEUED")
        assert cluster.connected()
        assert "Slurm does not answer" in cluster.pool()["problem"]
        slurm.start_controller()
        experiment.open_gate("step-0-2")
        for each in (experiment, waiting):
            each.ended(within=120)
            assert cluster.restarts(each) == 0
