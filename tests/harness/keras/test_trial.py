"""``TFKerasTrial``: lengths and periods of the configuration, kinds of data, and errors."""

import contextlib
import json

import pytest

from determined import core
from determined.exec import harness
from determined_launch import environment

# One test worker imports Keras, inside the tests. Keras uses deprecated parts of NumPy.
pytestmark = [pytest.mark.xdist_group("keras"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def reports(monkeypatch):
    """Returns the steps of reports off the cluster, by kind."""
    steps_by_kind = {"training": [], "validation": []}
    real_init = core.init

    @contextlib.contextmanager
    def init(**arguments):
        with real_init(**arguments) as context:
            for kind, steps in steps_by_kind.items():
                monkeypatch.setattr(
                    context.train, f"report_{kind}_metrics", lambda step, _, steps=steps: steps.append(step)
                )
            yield context

    monkeypatch.setattr(core, "init", init)
    return steps_by_kind


@pytest.fixture
def train(data, make_model, monkeypatch, tmp_path, reports):
    from determined.keras import TFKerasTrial, _training

    def run(*, training=data, options=None, build=make_model, test_mode=False, **config):
        class Trial(TFKerasTrial):
            def __init__(self, context):
                self.context = context
                context.configure_fit(**(options or {}))

            def build_model(self):
                return self.context.wrap_model(build())

            def build_training_data_loader(self):
                return self.context.wrap_dataset(training)

            def build_validation_data_loader(self):
                return data

        storage = {"checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "checkpoints")}}
        monkeypatch.setenv(environment.EXPERIMENT_CONFIG, json.dumps({**storage, **config}))
        monkeypatch.setenv(environment.HPARAMS, json.dumps({"global_batch_size": 16}))
        _training.run(Trial, "tests:Trial", test_mode=test_mode)
        return reports

    return run


def searcher(**length):
    return {"name": "single", "metric": "val_loss", "max_length": length}


def test_the_configuration_sets_length_and_periods(train, tmp_path):
    steps = train(
        searcher=searcher(batches=10),
        scheduling_unit=4,
        min_validation_period={"batches": 5},
        min_checkpoint_period={"batches": 3},
        checkpoint_policy="none",
        perform_initial_validation=True,
    )
    assert steps == {"training": [4, 5, 8, 10], "validation": [0, 5, 10]}
    written = [json.loads(path.read_text())["steps_completed"] for path in tmp_path.glob("checkpoints/*/metadata.json")]
    assert sorted(written) == [3, 6, 9, 10]


def test_an_epoch_is_one_pass_over_data_with_a_length(train, data):
    import keras

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return tuple(array[index * 16 : (index + 1) * 16] for array in data)

    steps = train(training=Batches(), searcher=searcher(epochs=2), min_validation_period={"epochs": 1})
    assert steps["validation"] == [4, 8]


def test_max_time_of_the_searcher_sets_the_length(train):
    assert train(searcher={"time_metric": "epochs", "max_time": 2})["validation"] == [12]


def test_test_mode_with_a_class_weight_trains_one_batch(train):
    assert train(test_mode=True, searcher=searcher(epochs=9), options={"class_weight": {0: 2.0, 1: 1.0, 2: 1.0}}) == {
        "training": [1],
        "validation": [1],
    }


def test_a_class_weight_decides_which_classes_are_learned(train, make_model, data):
    models = []

    def build():
        models.append(make_model())
        return models[-1]

    for options in ({}, {"class_weight": {0: 0.0, 1: 1.0, 2: 0.0}}):
        train(options=options, build=build, searcher=searcher(epochs=10))
    plain, weighted = (set(model.predict(data[0], verbose=0).argmax(axis=1)) for model in models)
    assert len(plain) > 1
    assert weighted == {1}


def test_a_missing_length_unknown_data_length_and_workers_are_refused(train, data):
    with pytest.raises(ValueError, match=r"searcher\.max_length"):
        train(searcher={"name": "single"})
    with pytest.raises(ValueError, match="generator of unknown length"):
        train(training=(array for array in data), searcher=searcher(epochs=1))
    with pytest.raises(ValueError, match="workers: Keras 3 has no such option"):
        train(options={"workers": 4}, searcher=searcher(epochs=1))


def test_a_keras_trial_is_refused_by_the_deepspeed_layer_and_accepted_by_a_process():
    from determined.keras import TFKerasTrial

    class Trial(TFKerasTrial):
        pass

    harness.check_kind(Trial, "a:B", {})
    with pytest.raises(harness.WrongKind, match="a:B is a TFKerasTrial, which the deepspeed layer cannot run"):
        harness.check_kind(Trial, "a:B", {environment.USE_DEEPSPEED: "1"})


def test_the_keras_context_provides_hyperparameters_data_and_seed(tmp_path):
    from determined.keras import TFKerasTrialContext

    with core.init(checkpoint_storage=str(tmp_path)) as core_context:
        context = TFKerasTrialContext(
            core_context, hparams={"global_batch_size": 8, "rate": 0.1}, exp_conf={"data": {"a": 1}}, trial_seed=5
        )
        assert context.get_per_slot_batch_size() == context.get_global_batch_size() == 8
        assert context.get_hparam("rate") == 0.1
        assert context.get_data_config() == {"a": 1}
        assert context.get_trial_seed() == 5
        assert context.wrap_optimizer("adam") == "adam"
