"""Trains a trial class as an experiment configuration of 2022 describes."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from determined._configured_fit import fit_arguments
from determined._units import Batch
from determined.core._cluster_info import read
from determined.pytorch import _init, deepspeed
from determined.pytorch._setup import configuration
from determined.pytorch._trainer import BaseTrainer, Trainer
from determined.pytorch._trial import Trial
from determined_launch import environment

logger = logging.getLogger(__name__)


def run(trial_class: type[Trial], spec: str, *, test_mode: bool = False) -> None:
    """Trains ``trial_class`` from its latest checkpoint to ``searcher.max_length``."""
    environ = environment.current()
    config = configuration(read(environ), environ)
    with _trainer(trial_class, config) as trainer:
        periods = fit_arguments(config, trainer.hparams)
        if test_mode:
            periods["max_length"] = Batch(1)
        logger.info("training %s", spec)
        trainer.fit(**periods, test_mode=test_mode)


@contextlib.contextmanager
def _trainer(trial_class: Any, config: dict[str, Any]) -> Iterator[BaseTrainer]:  # noqa: ANN401  # only the trial's author knows this type
    optimizations = config.get("optimizations") or {}
    frequency = int(optimizations.get("aggregation_frequency") or 1)
    if issubclass(trial_class, deepspeed.DeepSpeedTrial):
        if frequency > 1:
            logger.warning("aggregation_frequency has no effect; use gradient_accumulation_steps of DeepSpeed")
        with deepspeed.init(exp_conf=config) as context:
            yield deepspeed.Trainer(trial_class(context), context)
        return
    with _init.init(
        exp_conf=config,
        aggregation_frequency=frequency,
        average_aggregated_gradients=optimizations.get("average_aggregated_gradients") is not False,
    ) as made:
        yield Trainer(trial_class(made), made)
