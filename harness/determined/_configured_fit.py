"""The length and the periods of training that an experiment configuration gives a trial class."""

from typing import Any

from determined._units import Batch, TrainUnit, from_config


def fit_arguments(config: dict[str, Any], hparams: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of ``Trainer.fit`` for a configuration."""
    searcher = config.get("searcher") or {}
    length = searcher.get("max_length")
    if length is None and searcher.get("max_time") is not None:
        length = {"epochs" if searcher.get("time_metric") == "epochs" else "batches": searcher["max_time"]}

    def unit(value: object) -> TrainUnit | None:
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
