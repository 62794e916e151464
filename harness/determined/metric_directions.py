"""Which values of a metric are better, as the configuration says."""

from collections.abc import Mapping
from typing import Any

GOALS = {"minimize": True, "maximize": False}
"""The values of ``metric_goals``, and whether smaller values are better."""


def smaller_is_better(config: Mapping[str, Any], metric: str) -> bool | None:
    """Returns whether smaller values of a metric are better, or None if the configuration does not say it.

    A name says nothing reliable: of two metrics called ``top5`` one may be an error and the other an accuracy.

    Args:
        config: an experiment's effective configuration.
        metric: name of a metric.

    Returns:
        True for ``minimize``, False for ``maximize``, None if the direction is not configured.

    Example:
        >>> config = {"searcher": {"metric": "loss"}, "metric_goals": {"val/top5": "maximize"}}
        >>> [smaller_is_better(config, name) for name in ("loss", "val/top5", "wer")]
        [True, False, None]
    """
    searcher = config.get("searcher") or {}
    if metric == searcher.get("metric"):
        return bool(searcher.get("smaller_is_better", True))
    return GOALS.get(str((config.get("metric_goals") or {}).get(metric)))
