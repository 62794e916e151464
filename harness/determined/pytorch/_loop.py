"""The training loop: trains batches, and at each boundary reports, validates, saves and checks for preemption."""

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, NoReturn

from determined._plan import TrainingPlan
from determined.core import _steps
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._checkpointer import Checkpointer
from determined.pytorch._data import Data
from determined.pytorch._preempt_poll import PreemptPoll
from determined.pytorch._state import Extras, TrainingState
from determined.pytorch._training_metrics import averages, by_batch
from determined.pytorch._trial_context import TrialContext
from determined.pytorch._validation import Validation, reduce_all

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_PROGRESS = 1.0


class Preempted(Exception):
    """Ends a preempted attempt. The state is saved, and a later attempt continues from it."""


class Loop:
    """The training loop of one attempt of a trial."""

    def __init__(
        self,
        *,
        context: TrialContext,
        callbacks: dict[str, PyTorchCallback],
        training: Data,
        train_batch: Callable[[Any, int, int], Any],
        validation: Validation,
        plan: TrainingPlan,
        state: TrainingState,
        keeper: Checkpointer,
        poll: PreemptPoll,
    ) -> None:
        self._context = context
        self._callbacks = list(callbacks.values())
        self._training = training
        self._train_batch = train_batch
        self._validation = validation
        self._plan = plan
        self._state = state
        self._keeper = keeper
        self._poll = poll
        self._train = context._core.train  # noqa: SLF001  # hidden from trials, not from the trainer
        self._position = context._position  # noqa: SLF001  # hidden from trials, not from the trainer
        self._aggregation = context._aggregation  # noqa: SLF001  # hidden from trials, not from the trainer
        self._chief = context.distributed.rank == 0
        self._progress_at = self._status_at = 0.0
        searcher = context.get_experiment_config().get("searcher") or {}
        self._metric = searcher.get("metric")
        self._has_warned = False
        self._smaller_is_better = bool(searcher.get("smaller_is_better", True))

    def run(self, checkpoint: str | None, *, step_zero_validation: bool) -> None:
        """Trains from the checkpoint, or from the beginning, until the end or a preemption."""
        state, context = self._state, self._context
        state.reset_training_reducers()
        if checkpoint is not None:
            self._keeper.load(checkpoint)
        progress = state.progress
        self._position.batch = progress.steps - 1
        self._position.stop_requested |= progress.stop_requested  # a trial may request the end in __init__
        if step_zero_validation and progress.steps == 0 and progress.validated_at is None:
            progress.validation_due = True
        for model in context.models:
            model.train()
        for callback in self._callbacks:
            callback.on_trial_startup(progress.steps, checkpoint)
        try:
            for callback in self._callbacks:
                callback.on_training_start()
            self._keeper.restore_streams()
            self._fit()
        except Preempted:
            logger.info("preempted after %d batches; a later attempt continues from there", state.progress.steps)
        finally:
            for callback in self._callbacks:
                callback.on_trial_shutdown()

    def _fit(self) -> None:
        progress = self._state.progress
        if progress.validation_due:
            self._validate()
            if self._plan.checkpoints_at(progress.steps):
                self._save()
        while progress.steps < self._plan.max_steps and not progress.stop_requested:
            self._epoch()
        if progress.validated_at != progress.steps:
            self._report()
            self._validate()
        self._save()
        self._tell_progress(last=True)

    def _epoch(self) -> None:
        """Trains to the end of the current epoch or of training."""
        state, plan, context = self._state, self._plan, self._context
        progress, running = state.progress, state.running
        train_batch, length = self._train_batch, plan.epoch_length
        is_alone = context.distributed.size == 1
        position, aggregation = self._position, self._aggregation
        schedulers = context.lr_schedulers
        mark = _steps.mark if _steps.is_watched() else None
        epoch = progress.epoch
        position.epoch = epoch
        self._status("training")
        if progress.batch_in_epoch == 0:
            for callback in self._callbacks:
                callback.on_training_epoch_start(epoch)
        boundary = plan.boundary_after(progress.steps)
        with contextlib.closing(_Closing(self._training.epoch(epoch, progress.batch_in_epoch))) as batches:
            for batch in batches:
                position.batch = progress.steps
                running.add(train_batch(batch, epoch, progress.steps))
                progress.advance(length)
                if mark is not None:
                    mark()
                for scheduler in schedulers:
                    scheduler.after_batch(progress.steps, aggregation=aggregation, epoch_length=length)
                if progress.steps == boundary:
                    self._at_boundary(epoch)
                    boundary = plan.boundary_after(progress.steps)
                elif is_alone and position.stop_requested:
                    progress.stop_requested = True
                if progress.steps >= plan.max_steps or progress.stop_requested or progress.batch_in_epoch == 0:
                    # no preemption at the end of training: only a validation remains, which checks by itself
                    if progress.steps < plan.max_steps and not progress.stop_requested:
                        self._poll_once()
                    return
                if self._poll_once():
                    return
        raise RuntimeError(f"the training data of epoch {epoch} ended before its {length} batches")

    def _poll_once(self) -> bool:
        """Leaves if the trial is preempted. Returns True if a slot has requested the end of training."""
        leaves = self._poll()
        progress = self._state.progress
        progress.stop_requested = progress.stop_requested or self._poll.stop_requested
        if leaves:
            self._leave()
        return progress.stop_requested

    def _at_boundary(self, epoch: int) -> None:
        progress, plan = self._state.progress, self._plan
        if progress.batch_in_epoch == 0:
            for callback in self._callbacks:
                callback.on_training_epoch_end(epoch)
        if self._context.distributed.size > 1:
            asked = any(self._context.distributed.allgather(self._position.stop_requested))
        else:
            asked = self._position.stop_requested
        progress.stop_requested = progress.stop_requested or asked
        if plan.reports_at(progress.steps):
            self._report()
        if plan.validates_at(progress.steps):
            self._validate()
        if plan.checkpoints_at(progress.steps):
            self._save()

    def _report(self) -> None:
        """Reports the training metrics since the last report; they stay part of the state until then."""
        state, context = self._state, self._context
        progress = state.progress
        if progress.reported_at == progress.steps:
            return
        values = state.running.values()
        metrics = averages(context.distributed.allgather(values))
        reducers = [(reducer, name) for reducer, name, for_training, _ in state.reducers if for_training]
        metrics.update(reduce_all(context, reducers))
        metrics.update(self._counts())
        for callback in self._callbacks:
            callback.on_training_workload_end(metrics, by_batch(values))
        if self._chief:
            self._train.report_training_metrics(progress.steps, metrics)
        state.running.reset()
        state.reset_training_reducers()
        progress.reported_at = progress.steps
        self._tell_progress()

    def _validate(self) -> None:
        state, progress = self._state, self._state.progress
        progress.validation_due = True
        self._status("validating")
        before = state.extras()
        metrics = self._validation.run(progress.steps)
        if metrics is None:
            self._leave(before)
        state.reset_training_reducers()
        metrics.update(self._counts())
        best = self._is_best(metrics)
        if self._chief:
            self._train.report_validation_metrics(progress.steps, metrics)
        progress.validation_due = False
        progress.validated_at = progress.steps
        self._status("training")
        if self._plan.policy == "all" or (self._plan.policy == "best" and best):
            self._save()

    def _is_best(self, metrics: dict[str, Any]) -> bool:
        """Compares the metric with the best of the whole experiment, before this value is reported."""
        value = metrics.get(self._metric) if self._metric is not None else None
        if self._plan.policy != "best":
            return False
        if not isinstance(value, (int, float)):
            if not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "the validation metrics have no number %r (searcher.metric), so there is no best checkpoint",
                    self._metric,
                )
            return False
        progress = self._state.progress
        known = self._context.distributed.broadcast(
            self._train.get_experiment_best_validation() if self._chief else None
        )
        sign = 1 if self._smaller_is_better else -1
        best = known is None or sign * value <= sign * known
        if progress.best_validation is None or sign * value < sign * progress.best_validation:
            progress.best_validation = float(value)
        return best

    def _save(self) -> None:
        if self._keeper.saved_at != self._state.progress.steps:
            self._status("checkpointing")
            self._keeper.save()

    def _leave(self, extras: Extras | None = None) -> NoReturn:
        self._poll.acknowledge()
        if self._keeper.saved_at != self._state.progress.steps:
            self._keeper.save(extras)
        raise Preempted

    def _counts(self) -> dict[str, int]:
        progress = self._state.progress
        return {"batches": progress.steps, "epochs": progress.epoch}

    def _tell_progress(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._chief and (last or now - self._progress_at >= _SECONDS_BETWEEN_PROGRESS):
            self._progress_at = now
            self._train.report_progress(min(1.0, self._state.progress.steps / max(1, self._plan.max_steps)))

    def _status(self, status: str) -> None:
        now = time.monotonic()
        if self._chief and now - self._status_at >= _SECONDS_BETWEEN_PROGRESS:
            self._status_at = now
            self._train.set_status(status)


class _Closing:
    """Iterates over a loader and stops its workers at the end of the block."""

    def __init__(self, source: object) -> None:
        self._source = source

    def __iter__(self) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        return self._source

    def close(self) -> None:
        stop = getattr(self._source, "_shutdown_workers", None) or getattr(self._source, "close", None)
        if stop is not None:
            stop()
        self._source = None
