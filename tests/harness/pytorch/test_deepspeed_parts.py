"""The parts of the DeepSpeed trial API that need no deepspeed: positions, configuration and refusals."""

import json
import sys
import types

import pytest
import torch

from determined import core
from determined.pytorch import DataLoader, deepspeed
from determined.pytorch._data import Batches
from determined.pytorch.deepspeed._state import EngineKeeper, EngineState
from determined.pytorch.deepspeed._stream import Stream, TrainingData, ValidationData
from determined.pytorch.deepspeed._trainer import DeepSpeedAdapter, averaged

pytestmark = pytest.mark.torch


class FakeEngine:
    """The part of an engine that the context uses."""

    def __init__(self, micro=2, steps=3):
        self.micro, self.steps, self.micro_steps = micro, steps, 0

    def train_micro_batch_size_per_gpu(self):
        return self.micro

    def gradient_accumulation_steps(self):
        return self.steps

    def buffers(self):
        return []


def batches(count, *, repeat=True):
    return Batches(DataLoader(list(range(count)), batch_size=2, shuffle=True), seed=3, rank=0, size=1, repeat=repeat)


@pytest.fixture
def context(tmp_path):
    train = core.DummyTrainContext()
    peers = core.DummyDistributedContext()
    core_context = core.Context(
        train=train,
        checkpoint=None,
        preempt=core.DummyPreemptContext(),
        distributed=peers,
        searcher=core.DummySearcherContext(train),
        profiler=core.DummyProfilerContext(),
    )
    return deepspeed.DeepSpeedTrialContext(core_context, hparams={}, exp_conf={})


def test_a_stream_continues_over_epochs_from_any_position():
    whole = Stream(batches(10))
    first = [next(whole).tolist() for _ in range(13)]
    assert first[:5] != first[5:10]  # another order in each epoch
    for position in range(13):
        resumed = Stream(batches(10))
        resumed.taken = position
        assert [next(resumed).tolist() for _ in range(13 - position)] == first[position:]


def test_an_epoch_has_whole_batches_and_no_record_is_dropped():
    data = TrainingData(batches(10), 2)
    assert len(data) == 2
    taken = [next(stream).tolist() for epoch in range(5) for stream in data.epoch(epoch) for _ in range(2)]
    assert sorted(value for batch in taken[:5] for value in batch) == list(range(10))
    assert data.stream.taken == 20


def test_validation_data_allows_one_batch_per_call():
    data = ValidationData(batches(5, repeat=False))
    batches_read = [next(stream).tolist() for stream in data.epoch(0)]
    assert sorted(value for batch in batches_read for value in batch) == list(range(5))
    stream = next(data.epoch(0))
    for _ in range(3):
        next(stream)
    with pytest.raises(RuntimeError, match="more than one batch per call"):
        next(stream)


def test_metrics_of_micro_batches_are_averaged():
    import torch

    metrics = averaged([{"loss": torch.tensor(1.0), "n": 1}, {"loss": torch.tensor(2.0), "n": 2}])
    assert (metrics["loss"].item(), metrics["n"]) == (1.5, 1.5)
    assert averaged([torch.tensor(1.0), torch.tensor(3.0)])["loss"].item() == 2.0


def test_the_deepspeed_configuration_is_read_and_overwritten(tmp_path):
    base = tmp_path / "ds.json"
    base.write_text(json.dumps({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1}}}))
    hparams = {"deepspeed_config": str(base), "overwrite_deepspeed_args": {"optimizer": {"params": {"lr": 2}}}}
    assert deepspeed.get_ds_config_from_hparams(hparams) == {
        "train_batch_size": 8,
        "optimizer": {"type": "Adam", "params": {"lr": 2}},
    }
    config = {"a": {"b": 1}}
    assert deepspeed.overwrite_deepspeed_config(config, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert config == {"a": {"b": 1}}
    with pytest.raises(ValueError, match="deepspeed_config"):
        deepspeed.get_ds_config_from_hparams({})


def test_the_context_checks_engines_and_hyperparameters(context):
    with pytest.raises(RuntimeError, match="no engine is wrapped"):
        context.get_num_micro_batches_per_slot()
    with pytest.raises(TypeError, match=r"deepspeed\.initialize"):
        context.wrap_model_engine(object())
    context.wrap_model_engine(FakeEngine())
    assert (context.get_train_micro_batch_size_per_gpu(), context.get_num_micro_batches_per_slot()) == (2, 3)
    with pytest.raises(ValueError, match="no hyperparameter"):
        context.get_hparam("x")


def test_unsupported_engine_features_are_refused(context):
    with pytest.raises(NotImplementedError, match="not supported yet"):
        context.set_mpu(object())
    pipeline = FakeEngine()
    pipeline.is_pipe_parallel = True
    with pytest.raises(NotImplementedError, match="pipeline parallel"):
        context.wrap_model_engine(pipeline)


class Trial(deepspeed.DeepSpeedTrial):
    def __init__(self, context):
        self.calls = []

    def build_training_data_loader(self):
        return DataLoader(list(range(12)), batch_size=2)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        self.calls.append((epoch_idx, batch_idx))
        return {"loss": float(next(dataloader_iter).sum())}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        return {}


@pytest.mark.parametrize("automatic", [True, False])
def test_train_batch_is_called_once_for_each_micro_batch_unless_disabled(context, automatic):
    context.wrap_model_engine(FakeEngine())
    if not automatic:
        context.disable_auto_grad_accumulation()
    trial = Trial(context)
    work = DeepSpeedAdapter(trial, context)
    data = work.training_data(trial.build_training_data_loader())
    train = work.train_batch()
    metrics = train(next(iter(data.epoch(0))), 0, 7)
    assert trial.calls == [(0, 7)] * (3 if automatic else 1)
    assert metrics["loss"] == ((1 + 5 + 9) / 3 if automatic else 1.0)


def test_engines_with_different_accumulation_steps_need_manual_accumulation(context):
    for steps in (1, 2):
        context.wrap_model_engine(FakeEngine(steps=steps))
    with pytest.raises(ValueError, match=r"differ in gradient_accumulation_steps \(\[1, 2\]\)"):
        DeepSpeedAdapter(Trial(context), context)
    context.disable_auto_grad_accumulation()
    DeepSpeedAdapter(Trial(context), context)


def test_a_checkpoint_inside_an_accumulation_is_refused(context):
    engine = FakeEngine()
    context.wrap_model_engine(engine)
    keeper = EngineKeeper(Trial(context), context, {}, EngineState(context, {}, TrainingData(batches(4), 1)))
    engine.micro_steps = 4
    with pytest.raises(RuntimeError, match="engine 0 is 1 micro batches into a batch"):
        keeper.save()


@pytest.fixture
def process_group_of_engine(monkeypatch):
    """Replaces deepspeed by a module with what ``init`` uses of it; importing the real one takes seconds."""
    engine_maker = types.ModuleType("deepspeed")
    engine_maker.ops = types.SimpleNamespace(__compatible_ops__={})
    engine_maker.init_distributed = lambda: None
    monkeypatch.setitem(sys.modules, "deepspeed", engine_maker)
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def make_group():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)


@pytest.mark.usefixtures("process_group_of_engine")
def test_init_destroys_the_process_group_that_it_made():
    with deepspeed.init(hparams={}):
        assert torch.distributed.is_initialized()
    assert not torch.distributed.is_initialized()


@pytest.mark.usefixtures("process_group_of_engine")
def test_a_script_may_destroy_the_process_group_of_init_itself():
    with deepspeed.init(hparams={}):
        torch.distributed.destroy_process_group()
    assert not torch.distributed.is_initialized()


@pytest.mark.usefixtures("process_group_of_engine")
@pytest.mark.parametrize("is_before", [True, False])
def test_init_keeps_a_process_group_that_the_script_made(is_before):
    if is_before:
        make_group()
    with deepspeed.init(hparams={}):
        if not is_before:
            torch.distributed.destroy_process_group()
            make_group()
    assert torch.distributed.is_initialized()
