"""Names and statistics of metrics, from the summaries that trials keep. Pure."""

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

from determined_master.api.schemas.metrics import MetricSummary, NamedMetric
from determined_master.json_numbers import number, outward
from determined_master.metrics.summary import GROUP_KEYS

_GROUPS = {key: group for group, key in GROUP_KEYS.items()}


def named(summaries: Iterable[dict[str, Any]]) -> list[NamedMetric]:
    """Merges the types over several trials; a metric of different types is a string, as within one trial."""
    names: dict[tuple[str, str], NamedMetric] = {}
    for summary in summaries:
        for group, name, entry in _entries(summary):
            metric = names.setdefault((group, name), NamedMetric(group=group, name=name, type=entry["type"], count=0))
            metric.count += entry.get("count", 0)
            if metric.type != entry["type"]:
                metric.type = "string"
    return [names[key] for key in sorted(names)]


def summarised(
    summary: dict[str, Any],
    wanted: Collection[tuple[str, str]] | None,
    is_smaller_better: Callable[[str], bool | None],
) -> list[MetricSummary]:
    return [
        MetricSummary(
            group=group,
            name=name,
            last=_plain(entry.get("last")),
            min=entry.get("min"),
            max=entry.get("max"),
            mean=entry.get("mean"),
            count=entry.get("count", 0),
            smaller_is_better=is_smaller_better(name),
        )
        for group, name, entry in _entries(summary)
        if wanted is None or (group, name) in wanted
    ]


def _entries(summary: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for key, metrics in summary.items():
        for name, entry in metrics.items():
            yield _GROUPS.get(key, key), name, entry


def _plain(value: object) -> float | str | bool | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return outward(number(value) or 0.0)
    return value if value is None or isinstance(value, float | str | bool) else json.dumps(value)
