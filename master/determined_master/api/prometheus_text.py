"""The text format of Prometheus. Imported by the first request for figures: the library takes 50 ms of a start."""

from collections.abc import Iterable, Mapping, Sequence

from fastapi import Response
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector


class _ReadMetrics(Collector):
    """Figures that were read for one answer."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def answer(metrics: Sequence[Metric]) -> Response:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_ReadMetrics(metrics))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def process() -> list[Metric]:
    """Returns memory, processor time, descriptors and garbage collections of this process."""
    return list(REGISTRY.collect())


def counter(name: str, text: str, value: float) -> Metric:
    family = CounterMetricFamily(name, text)
    family.add_metric((), value)
    return family


def gauge(name: str, text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for names, value in values:
        family.add_metric(names, value)
    return family


def by_state(name: str, what: str, counts: Mapping[str, int]) -> Metric:
    return gauge(name, f"{what} by state", ("state",), [((state,), count) for state, count in counts.items()])


def relation(from_: str, to: str, pairs: Iterable[tuple[str, str]]) -> Metric:
    """Returns Determined's form of a relation: a gauge that is 1 for each pair."""
    text = f"1 for each pair of {from_} and {to}"
    return gauge(f"det_{from_}_{to}", text, (from_, to), [(pair, 1) for pair in pairs])
