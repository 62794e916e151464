"""Chooses the best checkpoints by the searcher's metric."""

from collections.abc import Mapping, Sequence
from typing import Any

from determined.errors import NotFound
from determined_cli.states import shown


def best(rows: Sequence[dict[str, Any]], *, smaller: bool) -> list[dict[str, Any]]:
    """Returns the stored checkpoints that have a value of ``searcher_metric``, best first.

    >>> rows = [{"uuid": "a", "state": "COMPLETED", "searcher_metric": 0.3}]
    >>> rows += [{"uuid": "b", "state": "COMPLETED", "searcher_metric": None}]
    >>> rows += [{"uuid": "c", "state": "DELETED", "searcher_metric": 0.1}]
    >>> [row["uuid"] for row in best(rows, smaller=True)]
    ['a']
    """
    stored = [row for row in rows if shown(row["state"]) == "COMPLETED"]
    rated = [row for row in stored if isinstance(row["searcher_metric"], (int, float))]
    return sorted(rated, key=lambda row: float(row["searcher_metric"]), reverse=not smaller)


def no_best(whose: str, metric: str, rows: Sequence[Mapping[str, Any]]) -> NotFound:
    """Returns the error that says why none of the checkpoints is the best one."""
    reported: set[str] = set()
    for row in rows:
        validation = (row.get("training") or {}).get("validation_metrics") or {}
        reported.update(validation.get("avg_metrics") or validation.get("avgMetrics") or {})
    names = f"validations reported {', '.join(sorted(reported))}" if reported else "no validation was reported there"
    number = "its checkpoint has" if len(rows) == 1 else f"none of its {len(rows)} checkpoints has"
    end = " no value" if len(rows) == 1 else " a value"
    return NotFound(
        f"{whose} has no best checkpoint: {number}{end} of the searcher's metric {metric} at its step ({names}). "
        "Correct searcher.metric or report that metric; --latest downloads the newest checkpoint"
    )
