"""Builds DeepSpeed's own configuration from a file and a trial's hyperparameters."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def overwrite_deepspeed_config(
    base_ds_config: str | Path | Mapping[str, Any], source_ds_dict: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a DeepSpeed configuration with some values replaced, key by key.

    Args:
        base_ds_config: a dictionary, or the path of a JSON file.
        source_ds_dict: the values to replace, nested as in the configuration.

    >>> overwrite_deepspeed_config({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    if isinstance(base_ds_config, Mapping):
        result = copy.deepcopy(dict(base_ds_config))
    else:
        result = json.loads(Path(base_ds_config).read_text(encoding="utf-8"))
    for key, value in source_ds_dict.items():
        below = result.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = overwrite_deepspeed_config(below, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def get_ds_config_from_hparams(
    hparams: Mapping[str, Any],
    config_key: str = "deepspeed_config",
    overwrite_key: str = "overwrite_deepspeed_args",
) -> dict[str, Any]:
    """Returns the DeepSpeed configuration that the hyperparameters name, with their replacements.

    Args:
        hparams: hyperparameters of the trial.
        config_key: hyperparameter with the path of the configuration file.
        overwrite_key: hyperparameter with the values to replace.

    Raises:
        ValueError: the hyperparameters have no ``config_key``.
    """
    if config_key not in hparams:
        raise ValueError(f"the hyperparameter {config_key} is missing: the path of a DeepSpeed configuration")
    return overwrite_deepspeed_config(hparams[config_key], hparams.get(overwrite_key) or {})
