"""Runs attempts of a trial in this process, with scripted preemption, recorded reports and checkpoints in a folder."""

import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from determined import core
from determined.pytorch import PyTorchTrial, PyTorchTrialContext, Trainer, _rng
from determined.storage.directory import DirectoryStorage


class ScriptedPreempt(core.DummyPreemptContext):
    """Requests preemption from call number ``at`` on, and counts the calls."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.asked = 0
        self.acknowledged = False

    def should_preempt(self, auto_ack: bool = True) -> bool:
        self.asked += 1
        return self.at is not None and self.asked >= self.at

    def acknowledge_preemption_signal(self) -> None:
        self.acknowledged = True


class KeepingCheckpoint(core.DummyCheckpointContext):
    """Records the checkpoints that it stores."""

    def __init__(self, root: Path, distributed: core.DistributedContext) -> None:
        super().__init__(DirectoryStorage(root), distributed)
        self.stored: list[tuple[int, str]] = []

    def _report(self, uuid: str, metadata: dict[str, Any]) -> None:
        self.stored.append((metadata["steps_completed"], uuid))


@dataclass
class Attempt:
    """Reports, checkpoints and final state of one attempt."""

    reports: list[tuple[str, int, dict[str, Any]]]
    stored: list[tuple[int, str]]
    asked: int
    acknowledged: bool
    weights: list[bytes]
    optimizers: list[list[bytes]]
    trial: Any = field(repr=False)


def attempt(
    trial_class: type[PyTorchTrial],
    root: Path,
    *,
    fit: Mapping[str, Any],
    preempt_at: int | None = None,
    latest: str | None = None,
    hparams: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    aggregation_frequency: int = 1,
    seed: int = 5,
    distributed: core.DistributedContext | None = None,
) -> Attempt:
    """Runs one attempt. Every random generator starts with a new seed, as in a new process."""
    random.seed(uuid.uuid4().int)
    np.random.seed(uuid.uuid4().int % 2**32)
    torch.manual_seed(uuid.uuid4().int % 2**63)
    distributed = distributed or core.DummyDistributedContext()
    train, preempt = core.DummyTrainContext(), ScriptedPreempt(preempt_at)
    checkpoint = KeepingCheckpoint(root, distributed)
    context = core.Context(
        train=train,
        checkpoint=checkpoint,
        preempt=preempt,
        distributed=distributed,
        searcher=core.DummySearcherContext(train),
        profiler=core.DummyProfilerContext(),
    )
    _rng.seed_all(seed)
    trial_context = PyTorchTrialContext(
        context,
        hparams=hparams or {"global_batch_size": 16},
        exp_conf=config or {},
        trial_seed=seed,
        aggregation_frequency=aggregation_frequency,
    )
    trial = trial_class(trial_context)
    Trainer(trial, trial_context).fit(latest_checkpoint=latest, **fit)
    weights = [value.numpy().tobytes() for model in trial_context.models for value in model.state_dict().values()]
    optimizers = [_tensors(optimizer.state_dict()["state"]) for optimizer in trial_context.optimizers]
    return Attempt(train.reports, checkpoint.stored, preempt.asked, preempt.acknowledged, weights, optimizers, trial)


def _tensors(state: Mapping[int, Mapping[str, Any]]) -> list[bytes]:
    """Returns the bytes of each tensor in the state of an optimizer."""
    values = (value for parameter in state.values() for value in parameter.values())
    return [value.numpy().tobytes() for value in values if isinstance(value, torch.Tensor)]


def chain(run: Callable[..., Attempt], moments: list[int]) -> list[Attempt]:
    """Runs an attempt preempted at each moment in turn, then one to the end. Each starts from the checkpoint before it."""
    attempts: list[Attempt] = []
    latest: str | None = None
    for moment in [*moments, None]:
        result = run(preempt_at=moment, latest=latest)
        attempts.append(result)
        if result.stored:
            latest = result.stored[-1][1]
        if not result.acknowledged:
            break
    return attempts


def joined(attempts: list[Attempt]) -> dict[tuple[str, int], dict[str, Any]]:
    """Returns all reports by group and step. Fails if a group reports a step twice."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for attempt_result in attempts:
        for group, step, metrics in attempt_result.reports:
            assert (group, step) not in rows, f"{group} {step} is reported twice"
            rows[group, step] = metrics
    return rows
