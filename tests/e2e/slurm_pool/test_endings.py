"""Pilots that end before their time: each end is named within ten seconds, costs no restart, and repeats no report."""

import time

import pytest
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.slurm_pool import slurm_pool
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.long,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(120, "ends a pilot and waits for the next one"),
]

NAMED_SECONDS = 10.0
"""Time in which the cause of an end is known after Slurm's own state shows it."""


def started(cluster, tmp_path, **changes):
    """Returns an experiment that waits inside its training, and the job of its pilot."""
    experiment = create(cluster, MODELS["digits"], tmp_path, **({"held": ("train-17",)} | changes))
    experiment.at_gate("train-17")
    return experiment, cluster.running_job()


def named(cluster, experiment, job, state):
    """Returns what the first attempt says of its end, which it says in time."""
    wait_until(lambda: cluster.jobs[job][0] == state, what=f"the job is {state}")
    began = time.monotonic()
    message = cluster.end_of(experiment)
    assert time.monotonic() - began < NAMED_SECONDS
    return message


def test_a_pilot_that_is_cancelled_outside_is_named_and_its_trial_goes_on(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm) as cluster:
        experiment, job = started(cluster, tmp_path)
        slurm.command("scancel", job)
        assert f"Slurm job {job} was cancelled outside Detent" in named(cluster, experiment, job, "CANCELLED")
        experiment.open_gate("train-17")
        same_as_straight(experiment, "digits")
        assert (cluster.restarts(experiment), len(cluster.jobs)) == (0, 2)


def test_a_pilot_that_slurm_preempts_without_grace_is_named(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm, sbatch={"partition": "nograce", "exclusive": True}) as cluster:
        experiment, job = started(cluster, tmp_path)
        node = cluster.jobs[job][1]
        slurm.command("sbatch", "-p", "high", "--exclusive", f"--nodelist={node}", "--wrap", "sleep 5")
        assert f"Slurm job {job} was preempted by Slurm" in named(cluster, experiment, job, "PREEMPTED")
        experiment.open_gate("train-17")
        same_as_straight(experiment, "digits")
        assert cluster.restarts(experiment) == 0


def test_a_trial_saves_in_the_grace_time_of_a_preemption(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm, sbatch={"partition": "grace", "exclusive": True}) as cluster:
        experiment, job = started(cluster, tmp_path, held=(), gates=("train-17",))
        node = cluster.jobs[job][1]
        slurm.command("sbatch", "-p", "high", "--exclusive", f"--nodelist={node}", "--wrap", "sleep 5")
        message = cluster.end_of(experiment)
        assert f"Slurm job {job} is preempted by Slurm" in message
        # A step that was trained twice would be reported once all the same.
        assert steps_of_last_checkpoint(experiment) == 18, (message, experiment.log[-30:])
        same_as_straight(experiment, "digits")
        assert cluster.restarts(experiment) == 0


def steps_of_last_checkpoint(experiment):
    answer = experiment.cluster.session.get(f"/api/v1/trials/{experiment.trial_id}/checkpoints")
    return max(int(row["metadata"]["steps_completed"]) for row in answer["checkpoints"])


def test_a_node_that_fails_is_named(slurm, tmp_path, same_as_straight):
    with slurm_pool(tmp_path / "c", slurm) as cluster:
        experiment, job = started(cluster, tmp_path)
        node = cluster.jobs[job][1]
        try:
            slurm.fail_node(node)
            assert f"node {node} failed (Slurm job {job})" in named(cluster, experiment, job, "NODE_FAIL")
            experiment.open_gate("train-17")
            same_as_straight(experiment, "digits")
        finally:
            slurm.mend_node(node)
        assert cluster.restarts(experiment) == 0


def test_a_task_of_a_pilot_does_not_see_slurm_and_lightning_runs_as_one_process(slurm, tmp_path):
    """Lightning takes itself for a part of a Slurm job wherever it finds SLURM_NTASKS."""
    site = tmp_path / "SITE.yaml"
    site.write_text("setup: ['export UCX_TLS=tcp SLURM_MADE_UP=1']\nenvironment: {NCCL_DEBUG: WARN}\n")
    look = "import os; from lightning_fabric.plugins.environments import SLURMEnvironment as S"
    show = "print('seen:', S.detect(), os.environ['UCX_TLS'], os.environ['NCCL_DEBUG'], sorted(n for n in os.environ"
    code = f"{look}; {show} if n.startswith(('SLURM', 'PMI'))), 'job', os.environ['DET_SLURM_JOB_ID'])"
    with slurm_pool(tmp_path / "c", slurm, site=str(site)) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path, entrypoint=["python3", "-c", code])
        experiment.ended()
        (job,) = cluster.jobs
        assert f"seen: False tcp WARN [] job {job}" in experiment.log


def test_pilots_that_die_at_once_are_said_and_tried_ever_more_rarely(slurm, tmp_path):
    site = tmp_path / "SITE.yaml"
    site.write_text("setup: ['echo there is no such module >&2; exit 3']\n")
    with slurm_pool(tmp_path / "c", slurm, site=str(site)) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path)
        words = "ended (exit 3): there is no such module"
        wait_until(lambda: words in cluster.pool()["problem"], what="the pool says why")
        wait_until(lambda: len(cluster.jobs) == 3, within=60, what="three tries")
        jobs = len(cluster.jobs)
        assert "there is no such module" in str(cluster.session.get(f"/detent/experiments/{experiment.id}/why"))
        experiment.do("kill")
        cluster.nothing_in_the_queue()
        assert len(cluster.jobs) == jobs


@pytest.mark.parametrize(
    ("sbatch", "words"),
    [
        ({"partition": "cmopute"}, 'there is no partition "cmopute"; did you mean "compute"?'),
        ({"partition": "down"}, "the partition down is DOWN"),
        ({"partition": "short", "time": "10"}, "the time limit 10 is above the 00:05:00 of the partition short"),
        ({"gres": "gpu:99"}, "Requested node configuration is not available"),
    ],
)
def test_a_pool_says_why_slurm_would_start_none_of_its_pilots(slurm, tmp_path, sbatch, words):
    with slurm_pool(tmp_path / "c", slurm, sbatch=sbatch) as cluster:
        create(cluster, MODELS["script"], tmp_path)
        wait_until(lambda: words in cluster.pool()["problem"], within=5, what=lambda: str(cluster.pool()))
        assert not cluster.live_jobs


def test_two_pools_on_one_partition_know_their_own_pilots(slurm, tmp_path):
    pools = [{"pool_name": name, "max_agents": 1} for name in ("default", "other")]
    with slurm_pool(tmp_path / "c", slurm, pools=pools) as cluster:
        changes = {"resources": {"slots_per_trial": 1}}
        first = create(cluster, MODELS["script"], tmp_path / "1")
        changes["resources"]["resource_pool"] = "other"
        second = create(cluster, MODELS["script"], tmp_path / "2", **changes)
        for experiment in (first, second):
            experiment.ended()
        pool_of = {agent["id"]: agent["resourcePools"] for agent in cluster.session.get("/api/v1/agents")["agents"]}
        assert {name.rpartition("-")[0]: pools for name, pools in pool_of.items()} == {
            "default": ["default"],
            "other": ["other"],
        }
        assert len(cluster.jobs) == 2


def test_a_pilot_that_waits_says_why_and_is_withdrawn_when_nothing_needs_it(slurm, tmp_path):
    slurm.command("sbatch", "-p", "compute", "--nodes=2", "--exclusive", "--wrap", "sleep 600")
    with slurm_pool(tmp_path / "c", slurm) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path)
        wait_until(lambda: "waits for resources (Resources)" in cluster.pool()["waiting"], what="the reason is shown")
        why = str(cluster.session.get(f"/detent/experiments/{experiment.id}/why"))
        assert "waits for resources (Resources)" in why
        experiment.do("kill")
        cluster.nothing_in_the_queue()


@pytest.mark.parametrize("state", ["pending", "running", "ended"])
def test_a_master_that_restarts_finds_its_pilots_again(slurm, tmp_path, state):
    blocker = ""
    if state == "pending":
        words = ("sbatch", "--parsable", "-p", "compute", "--nodes=2", "--exclusive", "--wrap", "sleep 600")
        blocker = slurm.command(*words).strip()
    with slurm_pool(tmp_path / "c", slurm, idle_timeout=2.0) as cluster:
        experiment = create(cluster, MODELS["script"], tmp_path, held=("step-0-2",))
        if state == "pending":
            wait_until(lambda: cluster.pool()["waiting"], what="the pilot waits")
        else:
            experiment.at_gate("step-0-2")
        (job,) = cluster.live_jobs
        cluster.kill_master()
        if state == "ended":
            slurm.command("scancel", job)
            wait_until(lambda: cluster.jobs[job][0] == "CANCELLED", what="the pilot has ended")
        if blocker:
            slurm.command("scancel", blocker)
        cluster.start_master()
        if state == "ended":
            assert f"Slurm job {job} was cancelled outside Detent" in cluster.end_of(experiment)
        experiment.open_gate("step-0-2")
        experiment.ended()
        assert cluster.restarts(experiment) == 0
        assert len(cluster.jobs) == (2 if state == "ended" else 1)
        cluster.nothing_in_the_queue()


def test_eight_trials_of_a_search_run_one_after_the_other_on_the_pilots_that_are_there(slurm, tmp_path):
    with slurm_pool(tmp_path / "c", slurm, max_agents=2, idle_timeout=5.0) as cluster:
        changes = {
            "searcher": {"name": "random", "metric": "loss", "max_trials": 8},
            "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
            "entrypoint": ["true"],
        }
        experiment = create(cluster, MODELS["script"], tmp_path, **changes)
        experiment.ended()
        assert [trial["state"] for trial in experiment.trials] == ["STATE_COMPLETED"] * 8
        assert 1 <= len(cluster.jobs) <= 2
        cluster.nothing_in_the_queue()
