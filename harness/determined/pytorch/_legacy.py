"""A trial class trained as the experiment configuration of 2022 says."""

import logging
from typing import Any

from determined.core._cluster_info import read
from determined.pytorch import _init
from determined.pytorch._trainer import Trainer
from determined.pytorch._trial import PyTorchTrial
from determined.pytorch._units import Batch, TrainUnit, from_config
from determined_launch import environment

logger = logging.getLogger(__name__)


def run(trial_class: type[PyTorchTrial], spec: str, *, test_mode: bool = False) -> None:
    """Trains ``trial_class`` from its latest checkpoint to ``searcher.max_length``."""
    environ = environment.current()
    config = _init._config(read(environ), environ)
    optimizations = config.get("optimizations") or {}
    with _init.init(
        exp_conf=config,
        aggregation_frequency=int(optimizations.get("aggregation_frequency") or 1),
        average_aggregated_gradients=optimizations.get("average_aggregated_gradients") is not False,
    ) as context:
        periods = fit_arguments(config, context.get_hparams())
        if test_mode:
            periods["max_length"] = Batch(1)
        logger.info("training %s", spec)
        Trainer(trial_class(context), context).fit(**periods, test_mode=test_mode)


def fit_arguments(config: dict[str, Any], hparams: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``Trainer.fit`` that a configuration stands for."""
    searcher = config.get("searcher") or {}
    length = searcher.get("max_length")
    if length is None and searcher.get("max_time") is not None:
        length = {"epochs" if searcher.get("time_metric") == "epochs" else "batches": searcher["max_time"]}

    def unit(value: Any) -> TrainUnit | None:
        return from_config(
            value,
            records_per_epoch=int(config.get("records_per_epoch") or 0),
            global_batch_size=hparams.get("global_batch_size"),
        )

    return {
        "max_length": unit(length),
        "validation_period": unit(config.get("min_validation_period")),
        "checkpoint_period": unit(config.get("min_checkpoint_period")),
        "reporting_period": Batch(int(config.get("scheduling_unit") or 100)),
        "checkpoint_policy": config.get("checkpoint_policy") or "best",
        "step_zero_validation": bool(config.get("perform_initial_validation")),
        "profiling_enabled": bool((config.get("profiling") or {}).get("enabled")),
    }
