"""The best checkpoint by a validation metric with one element of any shape."""

import json

import numpy as np
import pytest
import torch
from tests.support.fake_master import serving, task_environment
from torch import nn

from determined import pytorch

pytestmark = [pytest.mark.torch, pytest.mark.budget(10, "trains with real checkpoints")]

SHAPES = {
    "tensor": lambda value: torch.tensor([value], dtype=torch.float64),
    "array": lambda value: np.array([[value]]),
    "number": float,
}


class Trial(pytorch.PyTorchTrial):
    """A trial whose accuracy is the best in the second of four validations."""

    def __init__(self, context):
        self.context = context
        self.shape = SHAPES[context.get_hparam("shape")]
        self.model = context.wrap_model(nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def build_training_data_loader(self):
        return pytorch.DataLoader([torch.ones(1)] * 4, batch_size=2)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.model(batch).square().sum()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss.reshape(1)}

    def evaluate_batch(self, batch, batch_idx):
        return {"accuracy": self.shape([0.5, 0.9, 0.7, 0.6][self.context.current_train_batch() // 2])}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_best_validation_metric_of_any_shape_stores_a_checkpoint(tmp_path, monkeypatch, shape):
    best_answers = iter(
        [
            (404, {"error": {"code": 5, "error": "none yet"}}),
            (200, {"metric": 0.5}),
            (200, {"metric": 0.9}),
            (200, {"metric": 0.9}),
        ]
    )
    config = {
        "searcher": {"metric": "accuracy", "smaller_is_better": False},
        "checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "checkpoints")},
    }
    with serving() as master:
        master.on("GET", "/best_searcher_validation_metric", lambda _: next(best_answers))
        environ = task_environment(master, tmp_path, DET_EXPERIMENT_CONFIG=json.dumps(config))
        for name, value in (environ | {"DET_HPARAMS": json.dumps({"shape": shape})}).items():
            monkeypatch.setenv(name, value)
        with pytorch.init() as context:
            pytorch.Trainer(Trial(context), context).fit(
                max_length=pytorch.Batch(8), validation_period=pytorch.Batch(2), reporting_period=pytorch.Batch(2)
            )
        sent = [(body["group"], body["metrics"]) for body in master.bodies("/metrics")]
        stored = [body["metadata"]["steps_completed"] for body in master.bodies("/checkpoints")]
    validated = {m["stepsCompleted"]: m["metrics"]["avgMetrics"]["accuracy"] for g, m in sent if g == "validation"}
    assert validated == {2: 0.5, 4: 0.9, 6: 0.7, 8: 0.6}
    assert [type(m["metrics"]["avgMetrics"]["loss"]) for g, m in sent if g == "training"] == [float] * 4
    assert stored == [2, 4, 8]  # the first, the best, and the end of training


def test_the_trainer_logs_a_missing_searcher_metric_once(tmp_path, monkeypatch, caplog):
    config = {
        "searcher": {"metric": "acuracy"},
        "checkpoint_storage": {"type": "directory", "container_path": str(tmp_path / "checkpoints")},
    }
    with serving() as master:
        environ = task_environment(master, tmp_path, DET_EXPERIMENT_CONFIG=json.dumps(config))
        for name, value in (environ | {"DET_HPARAMS": json.dumps({"shape": "number"})}).items():
            monkeypatch.setenv(name, value)
        with pytorch.init() as context:
            pytorch.Trainer(Trial(context), context).fit(
                max_length=pytorch.Batch(8), validation_period=pytorch.Batch(2), reporting_period=pytorch.Batch(2)
            )
    messages = [record.getMessage() for record in caplog.records]
    assert sum("have no number 'acuracy'" in message for message in messages) == 1
    assert (
        sum('did you mean "accuracy"?' in message for message in messages) == 2
    )  # at the first validation and at the end
