"""``Trainer.fit``: sets up loaders, callbacks, plan and state for one attempt and runs the loop."""

import logging
from typing import Any

from determined._plan import TrainingPlan
from determined._units import Batch, TrainUnit, from_config
from determined.pytorch._checkpointer import Checkpointer
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._loop import Loop
from determined.pytorch._preempt_poll import PreemptPoll
from determined.pytorch._repeatable import warn_of_unrepeatable_order
from determined.pytorch._trial import PyTorchTrial
from determined.pytorch._trial_adapter import PyTorchAdapter, TrialAdapter
from determined.pytorch._validation import Validation

logger = logging.getLogger(__name__)


class BaseTrainer:
    """The trainer for any kind of trial."""

    def __init__(self, work: TrialAdapter) -> None:
        self._work = work
        self._core = work.context._core  # noqa: SLF001  # hidden from trials, not from the trainer

    @property
    def hparams(self) -> dict[str, Any]:
        """Returns the trial's hyperparameters."""
        return self._work.context.get_hparams()

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
        """Trains up to ``max_length``. Returns early if the trial is preempted.

        On the cluster, an attempt continues from the trial's latest checkpoint.

        Args:
            checkpoint_period: period of checkpoints; None saves only at the end.
            validation_period: period of validations; None validates only at the end.
            max_length: total length of training; by default the deprecated ``searcher.max_length``.
            reporting_period: period of reports of training metrics.
            checkpoint_policy: ``best`` saves after a validation that is the experiment's best, ``all`` after each,
                ``none`` after none.
            latest_checkpoint: uuid of a checkpoint to start from; by default the trial's latest.
            step_zero_validation: validate before the first batch.
            test_mode: train and validate a single batch; only off the cluster.
            profiling_enabled: sample processor and memory during training.

        Raises:
            ValueError: there is no length, or ``test_mode`` is used on the cluster.
        """
        context = self._work.context
        info = self._core.info
        if test_mode and info is not None:
            raise ValueError("test_mode is supported in local runs only")
        if max_length is None and not test_mode:
            max_length = self._configured_length()
        loop, keeper = self._loop(
            max_length=Batch(1) if test_mode else max_length or Batch(0),
            reporting_period=reporting_period,
            validation_period=validation_period,
            checkpoint_period=checkpoint_period,
            # off the cluster the best value of other trials is unknown
            checkpoint_policy="all" if info is None and checkpoint_policy == "best" else checkpoint_policy,
            validation_limit=1 if test_mode else None,
        )
        if profiling_enabled:
            self._core.profiler.on()
        if context.distributed.rank != 0:
            logging.getLogger().setLevel(logging.WARNING)
        latest = latest_checkpoint or (info.latest_checkpoint if info is not None else None)
        loop.run(latest, step_zero_validation=step_zero_validation)
        if test_mode:
            keeper.round_trip()

    def _loop(
        self,
        *,
        max_length: TrainUnit,
        reporting_period: TrainUnit,
        validation_period: TrainUnit | None,
        checkpoint_period: TrainUnit | None,
        checkpoint_policy: str,
        validation_limit: int | None,
    ) -> tuple[Loop, Checkpointer]:
        """Sets up callbacks, data, plan and state of one attempt."""
        work, trial, context = self._work, self._work.trial, self._work.context
        callbacks = trial.build_callbacks()
        training_loader = trial.build_training_data_loader()
        training = work.training_data(training_loader)
        warn_of_unrepeatable_order(training_loader, is_chief=context.distributed.rank == 0)
        loader = trial.build_validation_data_loader()
        validating = work.validation_data(loader)
        context._position.epoch_length = len(training)  # noqa: SLF001  # hidden from trials, not from the trainer
        plan = TrainingPlan.make(
            max_length=max_length,
            epoch_length=len(training),
            reporting=reporting_period,
            validation=validation_period,
            checkpoint=checkpoint_period,
            policy=checkpoint_policy,
            global_batch_size=work.global_batch_size(),
        )
        state, keeper = work.keeping(callbacks, training)
        poll = PreemptPoll(self._core, context.get_stop_requested)
        validation = Validation(trial, context, callbacks, validating, loader, leave=poll, limit=validation_limit)
        loop = Loop(
            context=context,
            callbacks=callbacks,
            training=training,
            train_batch=work.train_batch(),
            validation=validation,
            plan=plan,
            state=state,
            keeper=keeper,
            poll=poll,
        )
        return loop, keeper

    def _configured_length(self) -> TrainUnit:
        searcher = self._work.context.get_experiment_config().get("searcher") or {}
        length = from_config(searcher.get("max_length"), records_per_epoch=0, global_batch_size=None)
        if length is None:
            raise ValueError("Trainer.fit needs max_length, for example max_length=pytorch.Epoch(10)")
        logger.warning("fit() without max_length takes searcher.max_length, which is deprecated")
        return length


class Trainer(BaseTrainer):
    """Trains a :class:`PyTorchTrial`.

    Args:
        trial: the trial.
        context: the context that the trial was made with.

    >>> with pytorch.init() as context:  # doctest: +SKIP
    ...     Trainer(MyTrial(context), context).fit(max_length=Batch(100))
    """

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        super().__init__(PyTorchAdapter(trial, context))
