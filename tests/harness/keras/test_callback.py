"""``DeterminedCallback``: training after a pause, reports, checkpoints and errors."""

import json
import logging

import numpy as np
import pytest
from tests.harness.keras.conftest import BATCH, BATCHES, EPOCHS, Preemption

from determined import core
from determined.errors import DeterminedError

# One test worker imports Keras, inside the tests. Keras uses deprecated parts of NumPy.
pytestmark = [pytest.mark.xdist_group("keras"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PER_EPOCH = BATCHES // EPOCHS


@pytest.fixture
def train(tmp_path, data, make_model, monkeypatch):
    """Returns a function that runs one attempt as in a new process. It returns weights, reports and newest
    checkpoint."""
    import keras

    from determined.keras import DeterminedCallback

    def run(checkpoint=None, *, stop_after=None, continue_id="1", seed=3, shuffle=True, **options):
        keras.utils.set_random_seed(seed)
        model = make_model()
        if checkpoint is not None:
            np.random.random(11)  # a new process has drawn other random numbers
        with core.init(checkpoint_storage=str(tmp_path / "checkpoints")) as context:
            context.preempt = Preemption(stop_after)
            reports = []
            for kind in ("training", "validation"):
                monkeypatch.setattr(
                    context.train,
                    f"report_{kind}_metrics",
                    lambda steps, metrics, kind=kind: reports.append((kind, steps, metrics)),
                )
            callback = DeterminedCallback(context, checkpoint, continue_id, **options)
            model.fit(
                *data,
                batch_size=BATCH,
                epochs=EPOCHS,
                shuffle=shuffle,
                validation_data=data,
                callbacks=[callback],
                verbose=0,
            )
        newest = max((tmp_path / "checkpoints").iterdir(), key=lambda path: path.stat().st_mtime_ns, default=None)
        values = [keras.ops.convert_to_numpy(value) for value in [*model.variables, *model.optimizer.variables]]
        return values, reports, newest.name if newest else None

    return run


def equal(first, second):
    return all(np.array_equal(left, right) for left, right in zip(first, second, strict=True))


@pytest.mark.parametrize("batches", [1, PER_EPOCH - 1, PER_EPOCH, PER_EPOCH + 3, 2 * PER_EPOCH])
def test_a_paused_training_ends_with_the_values_of_an_uninterrupted_one(train, batches):
    straight, reports, _ = train(checkpoint_epochs=0)
    paused, first, checkpoint = train(stop_after=batches, checkpoint_epochs=0)
    assert not equal(straight, paused)
    resumed, second, _ = train(checkpoint, checkpoint_epochs=0, seed=99)
    assert equal(straight, resumed)
    assert first + second == reports, "the reports of both attempts are those of the uninterrupted run"


def test_a_training_in_shuffled_batches_with_five_pauses_ends_with_the_same_values(train):
    straight, _, _ = train(shuffle="batch")
    checkpoint = None
    for stop in (2, 3, 4, 5, 1):
        _, _, checkpoint = train(checkpoint, stop_after=stop, shuffle="batch")
    resumed, _, _ = train(checkpoint, shuffle="batch")
    assert equal(straight, resumed)


def test_training_is_reported_by_batches_and_validation_by_epochs(train):
    _, reports, _ = train(train_metrics_report_period=4)
    assert [steps for kind, steps, _ in reports if kind == "training"] == [4, 8, 12, 16]
    validations = [(steps, metrics) for kind, steps, metrics in reports if kind == "validation"]
    assert [steps for steps, _ in validations] == [PER_EPOCH * epoch for epoch in range(1, EPOCHS + 1)]
    assert set(validations[0][1]) == {"val_loss", "val_accuracy", "batches", "epochs"}
    assert validations[0][1]["epochs"] == 1


def test_a_checkpoint_of_another_training_provides_only_its_weights(train, caplog):
    _, _, checkpoint = train()
    with caplog.at_level(logging.INFO, logger="determined.keras"):
        _, reports, _ = train(checkpoint, continue_id="2")
    assert "starting warm" in caplog.text
    assert [steps for kind, steps, _ in reports if kind == "validation"][-1] == BATCHES


def test_a_finished_training_that_is_resumed_trains_no_batch(train):
    first, _, checkpoint = train()
    second, reports, newest = train(checkpoint)
    assert equal(first[:2], second[:2])
    assert reports == []
    assert newest == checkpoint


def test_checkpoints_have_their_steps(train, tmp_path):
    _, _, checkpoint = train(checkpoint_epochs=2)
    folder = tmp_path / "checkpoints" / checkpoint
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["steps_completed"] == BATCHES
    assert metadata["framework"].startswith("keras-3")
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2, "one at the second epoch, one at the end"


def test_a_state_for_a_model_with_other_metrics_is_refused(train, make_model, tmp_path):
    from determined.keras import _state

    _, _, checkpoint = train(stop_after=2)
    stored = _state.load(tmp_path / "checkpoints" / checkpoint, make_model(), "1")
    with pytest.raises(ValueError, match="Give another continue_id"):
        _state.write_values(make_model(), [*stored.values, 1.0])


def test_invalid_arguments_of_the_callback_are_refused(tmp_path):
    from determined.keras import DeterminedCallback

    with core.init(checkpoint_storage=str(tmp_path)) as context:
        with pytest.raises(ValueError, match="train_metrics_report_period"):
            DeterminedCallback(context, None, "1", train_metrics_report_period="step")
        with pytest.raises(ValueError, match="checkpoint_epochs"):
            DeterminedCallback(context, None, "1", checkpoint_epochs=-1)
        context.distributed.size = 2
        with pytest.raises(DeterminedError, match="slots_per_trial"):
            DeterminedCallback(context, None, "1")


def test_the_tensorboard_callback_without_tensorflow_raises_an_error_with_the_remedy(monkeypatch):
    from determined.keras import TensorBoard

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorflow, or leave the callback out") as raised:
        TensorBoard(update_freq="epoch")
    assert raised.value.name == "tensorflow"


def test_the_tensorboard_callback_writes_to_the_folder_of_the_trial(monkeypatch, tmp_path):
    from determined.keras import TensorBoard

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: True)
    assert TensorBoard(update_freq="epoch").log_dir == str(tmp_path / "tensorboard")
    assert TensorBoard("elsewhere").log_dir == "elsewhere"
