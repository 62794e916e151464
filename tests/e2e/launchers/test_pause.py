"""Paused and activated under each layer on two machines: nothing lost or repeated, and the same bits at the end."""

import pytest
from tests.support.live_launchers import LAYERS, command_lines, example_under
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e
SAMPLE = ("horovod",)
"""Under torch_distributed tests/e2e/containers pauses too, and test_ranks leaves engines of deepspeed."""


@pytest.mark.parametrize(
    "layer", [pytest.param(each, marks=() if each in SAMPLE else pytest.mark.long) for each in LAYERS]
)
def test_a_trial_on_two_machines_pauses_and_resumes_with_the_same_bits(gang, same_as_bare, tmp_path, layer, moments):
    slots = gang.shape("2x1")
    # Fast ranks ask again after at most as many steps as they have made so far, so a later gate may be the last question.
    step = moments.randrange(3, 18)
    experiment = create(
        gang, example_under(layer, slots=slots, held=True), tmp_path / "paused", gates=(f"train-{step}",)
    )
    experiment.at_gate(f"train-{step}", within=120)
    token = gang.session._headers["Authorization"].split()[-1]
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


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=pytest.mark.long)])
def test_two_ranks_preempted_by_better_jobs_end_with_the_same_bits(gang, same_as_bare, tmp_path, moments, times):
    """A job of better priority comes at random batches; each time the trial saves, leaves, and gets its slots back."""
    slots, layer = gang.shape("2x1"), "torch_distributed"
    last = experiment_steps(layer) - 2

    def next_batch(steps: int, left: int) -> str:
        # A run leaves after at most as many batches as it has made before the gate, so each may use half of its share.
        return f"train-{moments.randint(steps, steps + (last - steps) // (2 * left))}"

    gate = next_batch(2, times)
    experiment = create(
        gang,
        example_under(layer, slots=slots, held=True),
        tmp_path / "preempted",
        gates=(gate,),
        resources={"slots_per_trial": slots, "priority": 80},
    )
    for left in reversed(range(times)):
        experiment.at_gate(gate, within=120)
        resources = {"slots_per_trial": 1, "priority": 10}
        urgent = create(gang, SCRIPT, tmp_path / f"urgent-{left}", held=("step-0-1",), resources=resources)
        urgent.at_gate("step-0-1", within=120)
        if left:
            gate = next_batch(newest_checkpoint(experiment), left)
            experiment.close_gate(gate, until_preempted=True)
        urgent.open_gate("step-0-1")
        urgent.ended(within=120)
    experiment.ended(within=120)
    assert experiment.progress["runId"] == times + 1
    assert experiment.trials[0]["restarts"] == 0
    same_as_bare(experiment, layer, slots)


def newest_checkpoint(experiment) -> int:
    """Returns the number of batches after which the trial saved last."""
    found = experiment.cluster.session.get(f"/api/v1/trials/{experiment.trial_id}/checkpoints")["checkpoints"]
    return max(each["metadata"]["steps_completed"] for each in found)


def experiment_steps(layer: str) -> int:
    return example_under(layer, slots=2).steps


def secrets_of(experiment) -> set[str]:
    """Tokens and keys that the trial's processes have in their environment."""
    from tests.support.live_processes import environ_of

    def look() -> set[str]:
        environs = [environ_of(pid) for pid in experiment.processes]
        names = ("DET_SESSION_TOKEN", "DET_USER_TOKEN", "DET_ALLOCATION_KEY")
        return {environ[name] for environ in environs for name in names if environ.get(name)}

    return wait_until(look, what="a process of the trial with its tokens")
