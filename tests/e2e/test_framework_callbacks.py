"""The callbacks for Hugging Face and Lightning with the real libraries, in this process: reports, checkpoints, resume."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from determined import core

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),  # Lightning warns about few workers and about a machine with Slurm
    pytest.mark.skipif(
        any(importlib.util.find_spec(each) is None for each in ("transformers", "pytorch_lightning")),
        reason="the frameworks are not installed: make .venv/frameworks",
    ),
]


@dataclass
class Info:
    latest_checkpoint: str | None


class Preempted(core.DummyPreemptContext):
    """Requests preemption at the given number of calls."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def should_preempt(self, auto_ack: bool = True) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[core.Context]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with core.init() as created:
        yield created


def continue_from(monkeypatch: pytest.MonkeyPatch, context: core.Context, tmp_path: Path) -> str:
    (stored,) = (tmp_path / "data" / "determined" / "checkpoints").iterdir()
    monkeypatch.setattr(core, "get_cluster_info", lambda: Info(stored.name))
    monkeypatch.setattr(context, "preempt", core.DummyPreemptContext())
    return stored.name


def steps(context: core.Context, group: str) -> list[int]:
    return [step for own, step, _values in context.train.reports if own == group]


def test_a_trainer_of_hugging_face_reports_is_preempted_and_continues(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import torch
    from transformers import Trainer, TrainingArguments

    from determined.transformers import DetCallback

    class Line(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            y = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}

    data = [{"x": x, "labels": 3 * x} for x in torch.rand(40, 1)]

    def train(**options: Any) -> tuple[Any, Any]:
        arguments = TrainingArguments(
            str(tmp_path / "trainer"),
            num_train_epochs=2,
            per_device_train_batch_size=4,
            logging_steps=5,
            eval_strategy="epoch",
            save_strategy="no",
            disable_tqdm=True,
            report_to="none",
            use_cpu=True,
        )
        callback = DetCallback(context, arguments, **options)
        trainer = Trainer(Line(), arguments, train_dataset=data, eval_dataset=data, callbacks=[callback])
        trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
        return callback, trainer

    monkeypatch.setattr(context, "preempt", Preempted(12))
    train(user_data={"data": "v3"}, filter_metrics=["loss", "eval_loss"])
    assert steps(context, "training") == [5, 10]
    assert [set(values) for _group, _step, values in context.train.reports] == [{"loss"}, {"loss"}, {"eval_loss"}]
    assert steps(context, "validation") == [10]
    uuid = continue_from(monkeypatch, context, tmp_path)
    metadata = context.checkpoint.get_metadata(uuid)
    assert (metadata["steps_completed"], metadata["data"], metadata["format"]) == (12, "v3", "transformers")
    context.train.reports.clear()
    callback, trainer = train()
    assert callback.resume_from_checkpoint == str(tmp_path / "trainer" / "determined-checkpoint")
    assert trainer.state.global_step == 20
    assert (min(steps(context, "training")), steps(context, "validation")) == (15, [20])


def fit_by_lightning(
    context: core.Context, *, trainer_options: dict[str, Any] | None = None, **options: Any
) -> tuple[Any, Any]:
    """Trains 2 epochs of 10 batches, and reports every 5 steps. Returns the callback and the Trainer."""
    import pytorch_lightning as pl
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from determined.pytorch.lightning import DeterminedCallback

    class Line(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, _number: int) -> Any:
            x, y = batch
            return torch.nn.functional.mse_loss(self.layer(x), y)

        def validation_step(self, batch: Any, number: int) -> None:
            self.log("val_loss", self.training_step(batch, number))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    x = torch.rand(40, 1)
    data = DataLoader(TensorDataset(x, 3 * x), batch_size=4)

    callback = DeterminedCallback(context, train_metrics_report_period=5, **options)
    trainer = pl.Trainer(
        max_epochs=2,
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
        **(trainer_options or {}),
    )
    trainer.fit(Line(), data, data, ckpt_path=callback.ckpt_path)
    return callback, trainer


def test_a_trainer_of_lightning_reports_is_preempted_and_continues(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from determined.pytorch.lightning import DeterminedCallback

    monkeypatch.setattr(context, "preempt", Preempted(12))
    fit_by_lightning(context, checkpoint_epochs=0)
    assert (steps(context, "training"), steps(context, "validation")) == ([5, 10], [10])
    assert set(context.train.reports[-1][2]) == {"val_loss"}
    uuid = continue_from(monkeypatch, context, tmp_path)
    metadata = context.checkpoint.get_metadata(uuid)
    assert (metadata["steps_completed"], metadata["format"]) == (12, "lightning")
    context.train.reports.clear()
    callback, trainer = fit_by_lightning(context)
    assert callback.ckpt_path == "determined-checkpoint/lightning.ckpt"
    assert trainer.global_step >= 20
    assert min(steps(context, "training")) == 15
    with pytest.raises(ValueError, match="train_metrics_report_period must be at least 1"):
        DeterminedCallback(context, train_metrics_report_period=0)
    with pytest.raises(ValueError, match="checkpoint_epochs must not be negative"):
        DeterminedCallback(context, checkpoint_epochs=-1)


def test_steps_of_lightning_that_take_several_batches_are_reported_once(context: core.Context):
    fit_by_lightning(context, trainer_options={"accumulate_grad_batches": 2})
    assert steps(context, "training") == [5, 10]


def test_a_preempted_trainer_of_lightning_ends_before_its_least_epochs_and_stores_once(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(context, "preempt", Preempted(12))
    _, trainer = fit_by_lightning(context, checkpoint_epochs=0, trainer_options={"min_epochs": 2, "min_steps": 20})
    assert trainer.global_step == 12
    continue_from(monkeypatch, context, tmp_path)  # finds one checkpoint
