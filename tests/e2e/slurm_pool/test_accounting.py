"""Pilots on a Slurm with accounting, where a quality of service decides what a job preempts and what it may have."""

from collections.abc import Iterator

import pytest
from tests.e2e.slurm_pool.test_endings import named, started, steps_of_last_checkpoint
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.slurm import Slurm, running_slurm
from tests.support.slurm_pool import slurm_pool
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.long,
    pytest.mark.xdist_group("slurm with accounting"),
    pytest.mark.budget(180, "starts MariaDB, slurmdbd and a Slurm"),
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with running_slurm(tmp_path_factory.mktemp("s"), with_accounting=True) as running:
        yield running


def take_the_node(slurm, cluster, job):
    node = cluster.jobs[job][1]
    slurm.command("sbatch", "--qos=high", "--exclusive", f"--nodelist={node}", "--wrap", "sleep 5")


def test_a_trial_saves_in_the_grace_time_of_its_quality_of_service(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm, sbatch={"qos": "low", "exclusive": True}) as cluster:
        experiment, job = started(cluster, tmp_path, held=(), gates=("train-17",))
        take_the_node(slurm, cluster, job)
        assert f"Slurm job {job} is preempted by Slurm" in cluster.end_of(experiment)
        assert steps_of_last_checkpoint(experiment) == 18, (
            cluster.end_of(experiment),
            print("LOG", *experiment.log[-40:], sep="\n"),
        )
        same_as_straight(experiment, "digits")
        assert cluster.restarts(experiment) == 0


def test_a_pilot_whose_quality_of_service_has_no_grace_is_preempted_in_words(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm, sbatch={"qos": "nograce", "exclusive": True}) as cluster:
        experiment, job = started(cluster, tmp_path)
        take_the_node(slurm, cluster, job)
        assert f"Slurm job {job} was preempted by Slurm" in named(cluster, experiment, job, "PREEMPTED")
        experiment.open_gate("train-17")
        same_as_straight(experiment, "digits")
        assert cluster.restarts(experiment) == 0


def test_a_pilot_beyond_the_limit_of_its_quality_of_service_says_so_while_it_waits(slurm, tmp_path):
    slurm.command("sacctmgr", "--immediate", "modify", "qos", "normal", "set", "MaxJobsPerUser=0")
    try:
        with slurm_pool(tmp_path / "c", slurm) as cluster:
            experiment = create(cluster, MODELS["script"], tmp_path)
            words = "the limit of its quality of service is reached (QOSMaxJobsPerUserLimit)"
            wait_until(lambda: words in cluster.pool()["waiting"], what=lambda: str(cluster.pool()))
            assert words in str(cluster.session.get(f"/detent/experiments/{experiment.id}/why"))
            experiment.do("kill")
            cluster.nothing_in_the_queue()
    finally:
        slurm.command("sacctmgr", "--immediate", "modify", "qos", "normal", "set", "MaxJobsPerUser=-1")


def test_an_unknown_account_is_refused_with_slurms_own_reason(slurm, tmp_path):
    with slurm_pool(tmp_path / "c", slurm, sbatch={"account": "nobodys"}) as cluster:
        create(cluster, MODELS["script"], tmp_path)
        words = "Invalid account or account/partition combination specified"
        wait_until(lambda: words in cluster.pool()["problem"], what=lambda: str(cluster.pool()))
        assert not cluster.live_jobs
