"""Trains a :class:`TFKerasTrial` as the experiment configuration says."""

import json
import logging
import math
from typing import Any

from determined import core
from determined._configured_fit import fit_arguments
from determined._plan import TrainingPlan
from determined._units import Batch
from determined.core._cluster_info import read
from determined.keras import _state
from determined.keras._backend import keras
from determined.keras._callback import DeterminedCallback
from determined.keras._trial import TFKerasTrial
from determined_launch import environment

logger = logging.getLogger(__name__)


class TrialCallback(DeterminedCallback):
    """Reports, validates and saves at the points of the plan, which can lie inside an epoch."""

    def __init__(
        self,
        core_context: core.Context,
        checkpoint: str | None,
        continue_id: str,
        *,
        plan: TrainingPlan,
        validation: dict[str, Any],
        validates_first: bool,
        metric: str | None,
        smaller_is_better: bool,
    ) -> None:
        super().__init__(core_context, checkpoint, continue_id, checkpoint_epochs=0)
        self._plan = plan
        self._validation = validation
        self._validates_first = validates_first
        self._metric = metric
        self._sign = 1 if smaller_is_better else -1

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Loads the checkpoint; validates before the first batch if the configuration says so."""
        super().on_train_begin(logs)
        if self._validates_first and self._position.steps == 0:
            self.validate()

    def after_batch(self, logs: dict[str, Any]) -> None:
        """Does what is due after this batch, and ends the training after its last one."""
        plan, steps = self._plan, self._position.steps
        if plan.reports_at(steps):
            self.report_training(logs)
            self._core.train.report_progress(min(1.0, steps / plan.max_steps))
        if plan.validates_at(steps):
            self.validate()
        if plan.checkpoints_at(steps):
            self.save()
        if steps >= plan.max_steps:
            self.model.stop_training = True

    def after_epoch(self, logs: dict[str, Any]) -> None:
        """Does nothing: the plan counts batches."""

    def validate(self) -> None:
        """Validates without a trace in the metrics of the epoch, reports, and saves if the policy says so."""
        kept = _state.read_values(self.model)
        logs = self.model.evaluate(**self._validation, verbose=0, return_dict=True)
        _state.write_values(self.model, kept)
        if _state.resumes_exactly():
            self.model.train()
        metrics = {f"val_{name}": float(value) for name, value in logs.items()}
        value = metrics.get(self._metric or "")
        known = self._core.train.get_experiment_best_validation() if self._plan.policy == "best" else None
        self.report_validation(metrics)
        is_best = value is not None and (known is None or self._sign * value <= self._sign * known)
        if self._plan.policy == "all" or (self._plan.policy == "best" and is_best):
            self.save()


def run(trial_class: type[TFKerasTrial], spec: str, *, test_mode: bool = False) -> None:
    """Trains ``trial_class`` from its latest checkpoint to the configured length.

    Raises:
        ValueError: the configuration has no length, or the data has an unknown number of batches.
    """
    environ = environment.current()
    info = read(environ)
    text = environment.value_of(environ, environment.EXPERIMENT_CONFIG)
    config: dict[str, Any] = info.trial._config if info else json.loads(text or "{}")  # noqa: SLF001  # not public
    hparams = info.trial.hparams if info else json.loads(environment.value_of(environ, environment.HPARAMS) or "{}")
    seed = info.trial.trial_seed if info else int(environ.get(environment.TRIAL_SEED) or 0)
    storage = config.get("checkpoint_storage") or {}
    local_storage = storage if info is None and storage.get("type") == "directory" else None
    with core.init(checkpoint_storage=local_storage) as core_context:
        keras.utils.set_random_seed(seed)
        context = trial_class.trial_context_class(core_context, hparams=hparams, exp_conf=config, trial_seed=seed)
        trial = trial_class(context)
        model = trial.build_model()
        training = _fit_data(trial.build_training_data_loader(), hparams)
        validation = _fit_data(trial.build_validation_data_loader(), hparams)
        if context._validation_steps is not None:  # noqa: SLF001  # hidden from trials, not from their trainer
            validation["steps"] = context._validation_steps  # noqa: SLF001
        periods = fit_arguments(config, hparams)
        if test_mode:
            periods["max_length"] = Batch(1)
        size = hparams.get("global_batch_size")
        plan = _plan(periods, _epoch_length(training), size, has_master=info is not None)
        if periods["profiling_enabled"]:
            core_context.profiler.on()
        logger.info("training %s", spec)
        searcher = config.get("searcher") or {}
        callback = TrialCallback(
            core_context,
            info.latest_checkpoint if info else None,
            str(info.trial.trial_id if info else 0),
            plan=plan,
            validation=validation,
            validates_first=periods["step_zero_validation"],
            metric=searcher.get("metric"),
            smaller_is_better=searcher.get("smaller_is_better") is not False,
        )
        options = {"verbose": 0, **context._fit_options}  # noqa: SLF001
        epochs = math.ceil(plan.max_steps / plan.epoch_length)
        model.fit(**training, epochs=epochs, callbacks=[*trial.keras_callbacks(), callback], **options)


def _fit_data(data: Any, hparams: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401  # data of several libraries
    """Returns the arguments of ``fit`` for the data of a loader."""
    if not isinstance(data, tuple):
        return {"x": data}
    names: tuple[str, ...] = ("x", "y", "sample_weight")
    arguments: dict[str, Any] = dict(zip(names, data, strict=False))
    if hparams.get("global_batch_size"):
        arguments["batch_size"] = int(hparams["global_batch_size"])
    return arguments


def _epoch_length(training: dict[str, Any]) -> int:
    """Returns the number of batches of an epoch."""
    data = training["x"]
    try:
        records = len(data[0] if isinstance(data, (list, tuple)) else data)
    except TypeError:
        raise ValueError(
            f"the training data is a {type(data).__name__} of unknown length; return arrays, a keras.utils.PyDataset, "
            "or data with a length"
        ) from None
    return math.ceil(records / training.get("batch_size", 32)) if "y" in training else records


def _plan(
    periods: dict[str, Any], epoch_length: int, global_batch_size: int | None, *, has_master: bool
) -> TrainingPlan:
    if periods["max_length"] is None:
        raise ValueError("a TFKerasTrial needs searcher.max_length or searcher.max_time in the configuration")
    policy = periods["checkpoint_policy"]
    return TrainingPlan.make(
        max_length=periods["max_length"],
        epoch_length=epoch_length,
        reporting=periods["reporting_period"],
        validation=periods["validation_period"],
        checkpoint=periods["checkpoint_period"],
        # off the cluster the best value of other trials is unknown
        policy="all" if policy == "best" and not has_master else policy,
        global_batch_size=global_batch_size,
    )
