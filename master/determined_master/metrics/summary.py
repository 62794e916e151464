"""Summary of a trial's metrics: count, minimum, maximum, mean, last value. Pure."""

import math
from collections.abc import Iterable
from typing import Any

from determined_master.json_numbers import number, outward

MAX_GROUPS, MAX_NAMES = 100, 10_000
"""Groups, and names of a group, that are summarized: the summary of a trial is stored anew with each report."""
GROUP_KEYS = {"training": "avg_metrics", "validation": "validation_metrics"}


def group_key(group: str) -> str:
    return GROUP_KEYS.get(group, group)


def add(summary: dict[str, Any], group: str, metrics: dict[str, Any], *, is_plain: bool = False) -> None:
    """Adds one report to ``summary``, in place. Values that are not finite only count as last value.

    ``is_plain``: all values are finite numbers or booleans, so that most need no look at their kind.
    """
    key = group_key(group)
    of_group: dict[str, dict[str, Any]] | None = summary.get(key)
    if of_group is None:
        if len(summary) >= MAX_GROUPS:
            return
        of_group = summary[key] = {}
    for name, value in metrics.items():
        entry = of_group.get(name)
        is_number = is_plain and value is not True and value is not False
        if is_number and entry is not None and entry["type"] == "number" and "count" in entry:
            # As below, without a look at what is known. Not a function: calling it takes as long as what it does.
            plain = float(value)
            entry["last"] = value
            entry["count"] = count = entry["count"] + 1
            entry["sum"] = total = entry["sum"] + plain
            entry["mean"] = total / count
            if plain < entry["min"]:
                entry["min"] = plain
            elif plain > entry["max"]:
                entry["max"] = plain
            continue
        kind = _kind(value)
        if entry is None:
            if len(of_group) >= MAX_NAMES:
                continue
            entry = of_group[name] = {"type": kind}
        elif entry["type"] != kind:
            entry["type"] = "string"
        entry["last"] = outward(value)
        figure = number(value)
        if figure is None or not math.isfinite(figure):
            continue
        count = entry.get("count", 0) + 1
        total = entry.get("sum", 0.0) + figure
        entry["count"] = count
        entry["sum"] = total
        entry["mean"] = total / count
        entry["min"] = min(entry.get("min", figure), figure)
        entry["max"] = max(entry.get("max", figure), figure)


def summarise(reports: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Summarizes (group, metrics) in the order of steps."""
    summary: dict[str, Any] = {}
    for group, metrics in reports:
        add(summary, group, metrics)
    return summary


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "number" if number(value) is not None else "string"
    return "array" if isinstance(value, list) else "object"
