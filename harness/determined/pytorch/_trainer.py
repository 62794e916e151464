"""``Trainer.fit``: sets up loaders, callbacks, plan and state for one attempt and runs the loop."""

import logging
from typing import Any

from determined.pytorch import _streams
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._data import Batches, DataLoader, PlainBatches
from determined.pytorch._keeper import Keeper
from determined.pytorch._loop import Loop
from determined.pytorch._plan import Plan
from determined.pytorch._preempt_poll import PreemptPoll
from determined.pytorch._state import TrainingState
from determined.pytorch._trial import PyTorchTrial
from determined.pytorch._units import Batch, TrainUnit, from_config
from determined.pytorch._validation import Validation

logger = logging.getLogger(__name__)

_TRAINING_DATA, _VALIDATION_DATA = 1, 2


class Trainer:
    """Trains a trial.

    >>> with pytorch.init() as context:  # doctest: +SKIP
    ...     Trainer(MyTrial(context), context).fit(max_length=Batch(100))
    """

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        self._trial = trial
        self._context = context

    def fit(
        self,
        checkpoint_period: TrainUnit | None = None,
        validation_period: TrainUnit | None = None,
        max_length: TrainUnit | None = None,
        reporting_period: TrainUnit = Batch(100),
        checkpoint_policy: str = "best",
        latest_checkpoint: str | None = None,
        step_zero_validation: bool = False,
        test_mode: bool = False,
        profiling_enabled: bool = False,
    ) -> None:
        """Trains up to ``max_length``; periods of None are never. Returns early where the trial is preempted.

        On the cluster an attempt goes on from the trial's own latest checkpoint, named or not. ``test_mode`` trains
        and validates one batch, off the cluster.
        """
        context, trial, info = self._context, self._trial, self._context._core.info
        if test_mode and info is not None:
            raise ValueError("test_mode is for local runs")
        if max_length is None and not test_mode:
            max_length = self._configured_length()
        size, rank, seed = context.distributed.size, context.distributed.rank, context.get_trial_seed()
        callbacks = trial.build_callbacks()
        training = self._batches(trial.build_training_data_loader(), seed, _TRAINING_DATA, repeat=True)
        loader = trial.build_validation_data_loader()
        validating = self._batches(loader, seed, _VALIDATION_DATA, repeat=False)
        context._epoch_length = len(training)
        plan = Plan.make(
            max_length=Batch(1) if test_mode else max_length or Batch(0),
            epoch_length=len(training),
            reporting=reporting_period,
            validation=validation_period,
            checkpoint=checkpoint_period,
            # off the cluster nobody knows the best of other trials
            policy="all" if info is None and checkpoint_policy == "best" else checkpoint_policy,
            global_batch_size=context.get_hparams().get("global_batch_size"),
        )
        state = TrainingState(context, callbacks)
        keeper = Keeper(trial, context, callbacks, state)
        poll = PreemptPoll(context._core)
        loop = Loop(
            trial=trial,
            context=context,
            callbacks=callbacks,
            training=training,
            validation=Validation(
                trial, context, callbacks, validating, loader, leave=poll, limit=1 if test_mode else None
            ),
            plan=plan,
            state=state,
            keeper=keeper,
            poll=poll,
        )
        if profiling_enabled:
            context._core.profiler.on()
        if rank != 0 and size > 1:
            logging.getLogger().setLevel(logging.WARNING)
        latest = latest_checkpoint or (info.latest_checkpoint if info is not None else None)
        loop.run(latest, step_zero_validation=step_zero_validation)
        if test_mode:
            keeper.round_trip()

    def _configured_length(self) -> TrainUnit:
        searcher = self._context.get_experiment_config().get("searcher") or {}
        length = from_config(searcher.get("max_length"), records_per_epoch=0, global_batch_size=None)
        if length is None:
            raise ValueError("Trainer.fit needs max_length, for example max_length=pytorch.Epoch(10)")
        logger.warning("fit() without max_length takes searcher.max_length, which is deprecated")
        return length

    def _batches(self, loader: Any, seed: int, purpose: int, *, repeat: bool) -> Batches | PlainBatches:
        own = _streams.mix(seed, purpose)
        if isinstance(loader, DataLoader):
            peers = self._context.distributed
            return Batches(loader, seed=own, rank=peers.rank, size=peers.size, repeat=repeat)
        if not self._context.experimental.plain_loaders:
            raise TypeError(
                f"the data loaders of a trial are determined.pytorch.DataLoader, not {type(loader).__name__}; or call "
                "context.experimental.disable_dataset_reproducibility_checks()"
            )
        return PlainBatches(loader, seed=own)
