"""Trials paused at every kind of moment and activated: the same bits, each step once, and no leftover process."""

import pytest
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.budget(60, "pauses a training several times")]


def steps_of_checkpoints(experiment):
    answer = experiment.cluster.session.get(f"/api/v1/trials/{experiment.trial_id}/checkpoints")
    return sorted(int(row["metadata"]["steps_completed"]) for row in answer["checkpoints"])


@pytest.mark.parametrize(
    ("model", "batch"),
    [
        pytest.param("digits", 17, id="digits-inside-epoch", marks=pytest.mark.long),
        pytest.param("digits", 22, id="digits-inside-accumulation"),
        pytest.param("digits", 31, id="digits-epoch-end", marks=pytest.mark.long),
        pytest.param("foreign", 8, id="foreign-even", marks=pytest.mark.long),
        pytest.param("foreign", 26, id="foreign-odd"),
        pytest.param("keras", 17, id="keras-inside-epoch"),
        pytest.param("keras", 31, id="keras-epoch-end", marks=pytest.mark.long),
    ],
)
def test_a_trial_paused_while_training_resumes_with_the_same_bits(cluster, tmp_path, same_as_straight, model, batch):
    """The pause arrives during batch number ``batch``, and the attempt ends right after it."""
    experiment = create(cluster, MODELS[model], tmp_path, gates=(f"train-{batch}",))
    experiment.at_gate(f"train-{batch}")
    experiment.pause()
    assert max(steps_of_checkpoints(experiment)) == batch + 1
    experiment.do("activate")
    same_as_straight(experiment, model)


@pytest.mark.parametrize(
    ("model", "steps", "batch"),
    [
        ("digits", 24, 2),
        pytest.param("digits", 40, 0, marks=pytest.mark.long),
        pytest.param("foreign", 14, 1, marks=pytest.mark.long),
    ],
)
def test_a_trial_paused_inside_a_validation_resumes_with_the_same_bits(
    cluster, tmp_path, same_as_straight, model, steps, batch
):
    """The attempt ends at its next batch with the checkpoint of the last training step. The validation runs again in
    full."""
    name = f"validate-{steps}-{batch}"
    experiment = create(cluster, MODELS[model], tmp_path, gates=(name,))
    experiment.at_gate(name)
    experiment.pause()
    assert steps not in {report["totalBatches"] for report in experiment.reports("validation")}
    assert max(steps_of_checkpoints(experiment)) == steps
    # one gate per batch: the validation starts again with its first batch
    experiment.close_gate(f"validate-{steps}-0")
    experiment.do("activate")
    experiment.at_gate(f"validate-{steps}-0")
    experiment.open_gate(f"validate-{steps}-0")
    same_as_straight(experiment, model)


def test_a_trial_paused_during_start_up_resumes_with_the_same_bits(cluster, tmp_path, same_as_straight):
    """The trial class is under construction: nothing is trained yet and nothing is lost."""
    experiment = create(cluster, MODELS["digits"], tmp_path, held=("init",), is_warm=False)
    experiment.at_gate("init")
    experiment.do("pause")
    experiment.open_gate("init")
    experiment.left()
    experiment.do("activate")
    same_as_straight(experiment)


@pytest.mark.long  # the test above pauses during the start
def test_a_trial_paused_during_its_startup_hook_resumes_with_the_same_bits(cluster, tmp_path, same_as_straight):
    """The attempt is not ready yet, so it is killed at once, whatever time the hook still needs."""
    gates = tmp_path / "gates"
    hook = f"if [ ! -e {gates}/hook.here ]; then touch {gates}/hook.here; sleep 600 & wait; fi\n"
    experiment = create(cluster, MODELS["digits"], tmp_path, files={"startup_hook__sh": hook})
    wait_until((gates / "hook.here").exists, what="the hook runs")
    experiment.pause()
    experiment.nothing_left()
    assert experiment.trials[0]["restarts"] == 0
    experiment.do("activate")
    same_as_straight(experiment)


@pytest.mark.long  # test_everything_at_once.py pauses many times
def test_a_trial_paused_twice_in_a_row_resumes_with_the_same_bits(cluster, tmp_path, same_as_straight, moments):
    first = moments.randrange(1, 20)
    second = moments.randrange(first + 1, 39)
    experiment = create(cluster, MODELS["digits"], tmp_path, gates=(f"train-{first}", f"train-{second}"))
    for batch in (first, second):
        experiment.at_gate(f"train-{batch}")
        experiment.pause()
        experiment.do("activate")
    same_as_straight(experiment)


def test_a_trial_activated_within_100_ms_of_its_pause_resumes_with_the_same_bits(
    cluster, tmp_path, same_as_straight, moments
):
    """The preempted attempt ends, and the next one continues."""
    batch = moments.randrange(2, 38)
    experiment = create(cluster, MODELS["digits"], tmp_path, gates=(f"train-{batch}",))
    experiment.at_gate(f"train-{batch}")
    experiment.do("pause")
    experiment.do("activate")
    same_as_straight(experiment)
