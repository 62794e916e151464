"""Trials under each layer on two machines are paused and activated, and end with the same bits."""

import pytest
from tests.support.live_launchers import LAYERS, command_lines, example_under
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.budget(90, "trains on two machines with pauses")]


@pytest.mark.long  # tests/e2e/containers pauses under torch_distributed, and test_ranks.py preempts engines of deepspeed
@pytest.mark.parametrize("layer", LAYERS)
def test_a_trial_on_two_machines_pauses_and_resumes_with_the_same_bits(gang, same_as_bare, tmp_path, layer, moments):
    slots = gang.shape("2x1")
    # Fast ranks ask again after at most as many steps as they have run so far, so a later gate may be after the last
    # call.
    step = moments.randrange(3, 18)
    experiment = create(
        gang, example_under(layer, slots=slots, held=True), tmp_path / "paused", gates=(f"train-{step}",)
    )
    experiment.at_gate(f"train-{step}", within=120)
    token = gang.session.headers["Authorization"].split()[-1]
    for line in command_lines(experiment):
        assert not any(secret in word for word in line for secret in [token, *secrets_of(experiment)]), line
    experiment.do("pause")
    experiment.left(within=60)
    experiment.nothing_left()
    left_at = experiment.progress["steps"]
    assert left_at < experiment_steps(layer)
    experiment.do("activate")
    experiment.ended(within=120)
    assert experiment.progress["runId"] == 2
    same_as_bare(experiment, layer, slots)
    training = [r["totalBatches"] for r in experiment.reports("training") if not r["archived"]]
    assert len(training) == len(set(training))


# tests/e2e/test_pause.py pauses a trial twice; each preemption here starts two ranks and their launchers anew.
@pytest.mark.long  # the test above pauses two ranks; a preemption is the same request
@pytest.mark.parametrize("times", [1, 10])
def test_two_ranks_preempted_by_better_jobs_end_with_the_same_bits(gang, same_as_bare, tmp_path, moments, times):
    """A job of better priority arrives at random batches. Each time the trial saves, ends, and gets its slots back."""
    slots, layer = gang.shape("2x1"), "torch_distributed"
    last = experiment_steps(layer) - 2

    def next_batch(steps: int, remaining: int) -> str:
        # An attempt ends after at most as many batches as it ran before the gate, so each may use half of its share.
        return f"train-{moments.randint(steps, steps + (last - steps) // (2 * remaining))}"

    gate = next_batch(2, times)
    experiment = create(
        gang,
        example_under(layer, slots=slots, held=True),
        tmp_path / "preempted",
        gates=(gate,),
        resources={"slots_per_trial": slots, "priority": 80},
    )
    for remaining in reversed(range(times)):
        experiment.at_gate(gate, within=120)
        resources = {"slots_per_trial": 1, "priority": 10}
        urgent = create(gang, SCRIPT, tmp_path / f"urgent-{remaining}", held=("step-0-1",), resources=resources)
        urgent.at_gate("step-0-1", within=120)
        if remaining:
            gate = next_batch(newest_checkpoint(experiment), remaining)
            experiment.close_gate(gate, until_preempted=True)
        urgent.open_gate("step-0-1")
        urgent.ended(within=120)
    experiment.ended(within=120)
    assert experiment.progress["runId"] == times + 1
    assert experiment.trials[0]["restarts"] == 0
    same_as_bare(experiment, layer, slots)


def newest_checkpoint(experiment) -> int:
    """Returns the number of batches of the newest checkpoint."""
    checkpoints = experiment.cluster.session.get(f"/api/v1/trials/{experiment.trial_id}/checkpoints")["checkpoints"]
    return max(checkpoint["metadata"]["steps_completed"] for checkpoint in checkpoints)


def experiment_steps(layer: str) -> int:
    return example_under(layer, slots=2).steps


def secrets_of(experiment) -> set[str]:
    """Returns the tokens and keys in the environment of the trial's processes."""
    from tests.support.live_processes import environ_of

    def look() -> set[str]:
        environs = [environ_of(pid) for pid in experiment.processes]
        names = ("DET_SESSION_TOKEN", "DET_USER_TOKEN", "DET_ALLOCATION_KEY")
        return {environ[name] for environ in environs for name in names if environ.get(name)}

    return wait_until(look, what="a process of the trial with its tokens")
