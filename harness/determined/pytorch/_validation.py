"""One validation. It can be left between two batches, and it restores the training streams and model modes."""

import contextlib
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import torch

from determined.core import _steps
from determined.pytorch import _rng
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._data import Data
from determined.pytorch._reducer import Reducer, plain_values, reduce_metric
from determined.pytorch._trial import Trial
from determined.pytorch._trial_context import TrialContext

_VALIDATION = 4


class Validation:
    """Runs the trial's ``evaluate`` method over the validation data."""

    def __init__(
        self,
        trial: Trial,
        context: TrialContext,
        callbacks: dict[str, PyTorchCallback],
        batches: Data,
        loader: object,
        *,
        leave: Callable[[], bool],
        limit: int | None = None,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = list(callbacks.values())
        self._batches = batches
        self._loader = loader
        self._averaging = context._averaging  # noqa: SLF001  # hidden from trials, not from the trainer
        self._leave = leave
        self._limit = limit
        self._reducers = context._reducers  # noqa: SLF001  # hidden from trials, not from the trainer
        self._whole = _overrides(trial, "evaluate_full_dataset")
        if self._whole == _overrides(trial, "evaluate_batch"):
            raise TypeError("a trial must define exactly one of evaluate_batch and evaluate_full_dataset")
        self._evaluate: Callable[..., object] = trial.evaluate_batch  # older trials take no number of the batch
        self._takes_index = len(inspect.signature(trial.evaluate_batch).parameters) > 1
        # all ranks must ask together: no rank asks after the smallest number of batches of a rank
        self._asks = min(context.distributed.allgather(len(batches)))

    def run(self, steps: int) -> dict[str, Any] | None:
        """Returns the metrics on every rank; None if the validation was interrupted."""
        modules = [module for model in self._context.models for module in model.modules()]
        modes = [module.training for module in modules]
        self._averaging.share_buffers(self._context.models)
        for model in self._context.models:
            model.eval()
        try:
            with _rng.untouched(), torch.no_grad(), self._precision():
                _rng.seed_all(_rng.mix(self._context.get_trial_seed(), _VALIDATION, steps))
                return self._run()
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context manager for mixed precision after ``context.experimental.use_amp()``."""
        if getattr(self._context, "_amp_scaler", None) is None:
            return contextlib.nullcontext()
        return torch.autocast(self._context.device.type)

    def _run(self) -> dict[str, Any] | None:
        context = self._context
        for callback in self._callbacks:
            callback.on_validation_start()
        reducers = [item for item in self._reducers if item[3]]
        for reducer, *_ in reducers:
            reducer.reset()
        for callback in self._callbacks:
            callback.on_validation_epoch_start()
        metrics = self._full() if self._whole else self._by_batch()
        if metrics is None:
            return None
        metrics.update(reduce_all(context, [(reducer, name) for reducer, name, _, _ in reducers]))
        for callback in self._callbacks:
            callback.on_validation_end(metrics)
        return metrics

    def _by_batch(self) -> dict[str, Any] | None:
        outputs: list[dict[str, Any]] = []
        to_device = self._context.experimental.auto_to_device
        for number, batch in enumerate(itertools.islice(self._batches.epoch(0), self._limit)):
            if number < self._asks and self._leave():
                return None
            data = self._context.to_device(batch) if to_device else batch
            output = self._trial.evaluate_batch(data, number) if self._takes_index else self._evaluate(data)
            if not isinstance(output, dict):
                raise TypeError(f"evaluate_batch must return a dictionary of metrics, not {type(output).__name__}")
            outputs.append(output)
            _steps.mark()
        for callback in self._callbacks:
            callback.on_validation_epoch_end(outputs)
        keys = dict.fromkeys(key for output in outputs for key in output)
        mine = {key: plain_values([output[key] for output in outputs if key in output]) for key in keys}
        how = self._trial.evaluation_reducer()
        parts = self._context.distributed.allgather(mine)
        every = dict.fromkeys(key for part in parts for key in part)
        return {
            key: reduce_metric(
                key,
                [value for part in parts for value in part.get(key, [])],
                how.get(key, Reducer.AVG) if isinstance(how, dict) else how,
            )
            for key in every
        }

    def _full(self) -> dict[str, Any]:
        metrics = None
        if self._context.distributed.rank == 0:
            metrics = {
                key: plain_values([value])[0] for key, value in self._trial.evaluate_full_dataset(self._loader).items()
            }
        return dict(self._context.distributed.broadcast(metrics))


def reduce_all(context: TrialContext, reducers: list[tuple[Any, str | None]]) -> dict[str, Any]:
    """Returns the metrics of the reducers over all slots, on every rank."""
    result: dict[str, Any] = {}
    for reducer, name in reducers:
        value = reducer.cross_slot_reduce(context.distributed.allgather(reducer.per_slot_reduce()))
        if name is not None:
            result[name] = plain_values([value])[0]
        elif isinstance(value, dict):
            result.update({key: plain_values([item])[0] for key, item in value.items()})
        else:
            raise TypeError("cross_slot_reduce of a reducer without a name must return a dictionary")
    return result


def _overrides(trial: Trial, name: str) -> bool:
    return getattr(type(trial), name) is not getattr(Trial, name)
