"""The PyTorch trial API, used by the names that user code imports."""

import copy
import importlib
import itertools
import pickle
import sys

import pytest
import torch
from torch import nn

from determined import core, pytorch
from determined.pytorch import _saving
from determined.pytorch._training_metrics import averages

pytestmark = pytest.mark.torch

MODEL = """
import torch
from torch import nn
from determined import pytorch


class Widened(pytorch.PyTorchTrial):
    def __init__(self, context, scale=1):
        self.context, self.scale = context, scale
        self.model = context.wrap_model(nn.Linear(context.get_hparam("width"), 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        self.largest = context.wrap_reducer(pytorch.SimpleMetricReducer(max), name="largest", for_training=False)

    def build_training_data_loader(self):
        return pytorch.DataLoader([torch.ones(self.context.get_hparam("width"))] * 4, batch_size=2)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss

    def evaluate_batch(self, batch, batch_idx):
        self.largest.update(10.0 * batch_idx)
        return {"lowest": float(batch_idx), "total": 1.0}

    def evaluation_reducer(self):
        return {"lowest": pytorch.Reducer.MIN, "total": pytorch.Reducer.SUM}
"""


@pytest.fixture
def off_the_cluster(monkeypatch, tmp_path):
    monkeypatch.delenv("DET_MASTER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "model_of_interface_test.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("model_of_interface_test", None)


def test_a_trained_trial_is_loaded_from_its_checkpoint(off_the_cluster):
    import model_of_interface_test as own

    with pytorch.init(hparams={"width": 3}) as context:
        trial = own.Widened(context)
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch(1), validation_period=pytorch.Epoch(1))
        reports = context.get_core_context().train.reports
    (checkpoint,) = (off_the_cluster / "data" / "determined" / "checkpoints").iterdir()
    loaded = pytorch.load_trial_from_checkpoint_path(str(checkpoint), trial_kwargs={"scale": 4})
    assert loaded.scale == 4
    torch.testing.assert_close(loaded.model.weight, trial.model.weight)
    validated = [values for group, _, values in reports if group == "validation"]
    assert [(metrics["lowest"], metrics["total"], metrics["largest"]) for metrics in validated] == [(0.0, 2.0, 10.0)]


def test_the_first_and_last_batch_of_an_epoch_are_unknown_before_the_first_batch():
    with pytorch.init(hparams={}) as context:
        assert (context.is_epoch_start(), context.is_epoch_end()) == (False, False)


def test_a_scheduler_can_be_copied_and_pickled():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    wrapped = pytorch.LRScheduler(scheduler, pytorch.LRScheduler.StepMode.MANUAL_STEP)
    for each in (copy.copy(wrapped), copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert (each.get_last_lr(), each.step_size) == ([0.5], 1)


def test_lists_of_different_lengths_are_refused_with_the_name_of_the_metric():
    with pytest.raises(ValueError, match="'per_class': its values have different lengths"):
        averages([{"per_class": [[1.0, 2.0], [3.0]]}])


def test_a_length_is_counted_in_batches_epochs_or_records():
    kinds = (pytorch.Batch, pytorch.Epoch, pytorch.Record)
    assert all(issubclass(kind, pytorch.TrainUnit) and kind(3).number == 3 for kind in kinds)
    with pytest.raises(ValueError, match="not be negative"):
        pytorch.Record(-1)
    with pytest.raises(ValueError, match="one number"):
        _ = pytorch.Epoch([1, 2]).number


def test_a_metric_reducer_without_a_function_needs_a_subclass():
    with pytest.raises(NotImplementedError, match="cross_slot_reduce"):
        pytorch.SimpleMetricReducer().cross_slot_reduce([[1]])


def test_data_of_every_kind_is_moved_to_the_device():
    train = core.DummyTrainContext()
    core_context = core.Context(
        train=train,
        checkpoint=core.DummyCheckpointContext(None, core.DummyDistributedContext()),
        preempt=core.DummyPreemptContext(),
        distributed=core.DummyDistributedContext(),
        searcher=core.DummySearcherContext(train),
        profiler=core.DummyProfilerContext(),
    )
    context = pytorch.PyTorchTrialContext(core_context, hparams={}, exp_conf={}, device=torch.device("meta"))
    batch: pytorch.TorchData = {"inputs": torch.ones(2)}
    assert isinstance(batch, pytorch.TorchData.__args__[0].__origin__)
    assert context.to_device(batch)["inputs"].device.type == "meta"
    assert [tensor.device.type for tensor in context.to_device([torch.ones(1), torch.ones(2)])] == ["meta", "meta"]
    assert context.wrap_model(nn.Linear(1, 1)).weight.device.type == "meta"


def test_a_batch_sampler_repeats_its_batches_without_end():
    batches = pytorch.samplers.RepeatBatchSampler([[0, 1], [2]])
    assert len(batches) == 2
    assert list(itertools.islice(batches, 4)) == [[0, 1], [2], [0, 1], [2]]


@pytest.fixture
def trial_of_own(master, tmp_path, monkeypatch):
    """Yields a function that trains 2 batches more as a task of trial 3, and returns the steps that it reports."""
    (tmp_path / "model_def_own.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DET_HPARAMS", '{"width": 3}')
    own = importlib.import_module("model_def_own")

    def train(length, latest=None):
        before = len(master.bodies("/metrics"))
        with pytorch.init() as context:
            pytorch.Trainer(own.Widened(context), context).fit(
                max_length=pytorch.Batch(length), reporting_period=pytorch.Batch(1), latest_checkpoint=latest
            )
        bodies = [body for body in master.bodies("/metrics")[before:] if body["group"] == "training"]
        return [body["metrics"]["stepsCompleted"] for body in bodies]

    yield train
    sys.modules.pop("model_def_own")


@pytest.mark.parametrize(
    ("owner", "steps"), [({"experimentId": 7, "trialId": 3}, [3, 4]), ({"experimentId": 8, "trialId": 9}, [1, 2, 3, 4])]
)
def test_a_checkpoint_is_the_trials_own_by_the_masters_word_not_by_its_file(master, trial_of_own, owner, steps):
    assert trial_of_own(2) == [1, 2]
    uuid = master.bodies("/api/v1/checkpoints")[-1]["uuid"]
    master.on("GET", f"/checkpoints/{uuid}", (200, {"checkpoint": {"training": owner}}))
    assert trial_of_own(4, latest=uuid) == steps


def test_checkpoints_below_the_working_folder_are_not_copied_into_later_ones(tmp_path):
    source, root = tmp_path / "work", tmp_path / "work" / "checkpoints"
    (source / "lib").mkdir(parents=True)
    (source / "lib" / "model.py").touch()
    for name in ("first", "second"):
        (root / name).mkdir(parents=True)
        _saving.write(root / name, {}, {}, source)
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*.py"))
    assert found == ["first/code/lib/model.py", "second/code/lib/model.py"]


def test_checkpoints_in_the_working_folder_itself_are_not_copied_into_later_ones(tmp_path):
    (tmp_path / "model.py").touch()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        _saving.write(tmp_path / name, {}, {}, tmp_path)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.py"))
    assert found == ["first/code/model.py", "model.py", "second/code/model.py"]
