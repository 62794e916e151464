"""Trials on pilots of a real Slurm: paused, and cut by the time limit, with the bits of a run without either."""

import pytest
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.slurm_pool import slurm_pool
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.xdist_group("slurm")]


@pytest.mark.budget(60, "starts a pilot and trains twice on it")
@pytest.mark.long  # the test below continues a trial on the next pilot
def test_a_trial_paused_on_a_pilot_resumes_on_it_with_the_same_bits(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm) as cluster:
        experiment = create(cluster, MODELS["digits"], tmp_path, gates=("train-17",))
        experiment.at_gate("train-17")
        job = cluster.running_job()
        experiment.pause()
        experiment.do("activate")
        same_as_straight(experiment, "digits")
        assert list(cluster.jobs) == [job]
        attempts = cluster.attempts(experiment)
        assert [each["containers"][0]["origin"] for each in attempts] == [f"Slurm job {job}"] * 2


@pytest.mark.long  # tests/integration/test_departures.py has the limit, test_page.py the pilots
@pytest.mark.budget(120, "Slurm's shortest time limit is a minute")
def test_a_trial_saves_before_the_time_limit_and_goes_on_in_the_next_pilot(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm, sbatch={"time": "1"}) as cluster:
        experiment = create(cluster, MODELS["digits"], tmp_path, gates=("train-17",))
        experiment.at_gate("train-17")
        first = cluster.running_job()
        words = f"time limit of Slurm job {first}"
        wait_until(lambda: words in str(cluster.session.get("/api/v1/agents")), within=10, what="the limit is known")
        same_as_straight(experiment, "digits")
        assert len(cluster.jobs) == 2
        assert cluster.restarts(experiment) == 0
        assert "time limit of Slurm job" in cluster.end_of(experiment)
