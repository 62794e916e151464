"""Jobs of two nodes with addresses of their own: a gang starts in one job, and trains over both."""

import pytest
from tests.e2e.launchers.test_machines import SCRIPTS
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.machines import gateway_of
from tests.support.slurm import Slurm
from tests.support.slurm_pool import slurm_pool
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.long,
    pytest.mark.xdist_group("slurm machines"),
    pytest.mark.budget(180, "trains over two nodes of a Slurm of its own"),
]


@pytest.fixture(scope="module")
def slurm(slurm_of_machines: Slurm) -> Slurm:
    return slurm_of_machines


def gang(cluster, tmp_path, **changes):
    return create(cluster, MODELS["digits"], tmp_path, resources={"slots_per_trial": 2}, **changes)


def test_a_gang_of_two_nodes_is_one_job_that_pauses_resumes_and_ends_as_a_whole(slurm, nodes, tmp_path):
    with slurm_pool(tmp_path / "c", slurm, host=gateway_of(nodes[0]), nodes=2, idle_timeout=3.0) as cluster:
        experiment = gang(cluster, tmp_path, held=("train-17",))
        experiment.at_gate("train-17")
        (job,) = cluster.jobs
        names = sorted(cluster.connected())
        assert [name.rpartition("-")[2] for name in names] == ["0", "1"]
        assert len({name.rpartition("-")[0] for name in names}) == 1
        experiment.do("pause")
        experiment.open_gate("train-17")
        experiment.left()
        experiment.do("activate")
        experiment.ended()
        experiment.result()
        places = [{each["address"] for each in attempt["containers"]} for attempt in cluster.attempts(experiment)]
        assert places == [{node.address for node in nodes}] * len(places)
        assert (cluster.restarts(experiment), list(cluster.jobs)) == (0, [job])
        cluster.nothing_in_the_queue()


def test_a_gang_whose_job_is_cancelled_goes_on_in_the_next_one(slurm, nodes, tmp_path):
    with slurm_pool(tmp_path / "c", slurm, host=gateway_of(nodes[0]), nodes=2) as cluster:
        experiment = gang(cluster, tmp_path, held=("train-17",))
        experiment.at_gate("train-17")
        job = cluster.running_job()
        slurm.command("scancel", job)
        assert f"Slurm job {job} was cancelled outside Detent" in cluster.end_of(experiment)
        experiment.open_gate("train-17")
        experiment.ended()
        experiment.result()
        assert cluster.restarts(experiment) == 0


def test_agents_in_steps_live_through_the_grace_time_and_report_no_exit_of_it(slurm, nodes, tmp_path):
    """TERM reaches all processes of a step when the grace time begins: the trial ends, and that is no failure."""
    partition = {"partition": "grace", "exclusive": True}
    with slurm_pool(tmp_path / "c", slurm, host=gateway_of(nodes[0]), nodes=2, sbatch=partition) as cluster:
        experiment = gang(cluster, tmp_path, held=("train-17",))
        experiment.at_gate("train-17")
        job = cluster.running_job()
        slurm.command("sbatch", "-p", "high", "--exclusive", "--nodes=2", "--wrap", "sleep 5")
        wait_until(lambda: job not in cluster.live_jobs, within=60, what="the job has ended")
        assert f"Slurm job {job} was preempted by Slurm" in cluster.end_of(experiment)
        experiment.open_gate("train-17")
        experiment.ended()
        experiment.result()
        assert cluster.restarts(experiment) == 0


@pytest.mark.parametrize("layer", sorted(SCRIPTS))
def test_each_launch_layer_connects_its_ranks_over_the_nodes_of_a_job(slurm, nodes, tmp_path, layer):
    with slurm_pool(tmp_path / "c", slurm, host=gateway_of(nodes[0]), nodes=2) as cluster:
        experiment = create(
            cluster,
            MODELS["script"],
            tmp_path,
            files={"sum.py": SCRIPTS[layer]},
            entrypoint=f"python3 -m determined.launch.{layer} python3 sum.py",
            resources={"slots_per_trial": 2},
        )
        experiment.ended()
        assert sum("sum 3.0" in line for line in experiment.log) == 2
        assert len(cluster.jobs) == 1
