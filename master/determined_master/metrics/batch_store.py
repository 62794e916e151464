"""Stores several reports of one sender as one operation of the group writer, so that they are one wait."""

from collections.abc import Sequence
from itertools import chain, islice

from sqlalchemy import Connection

from determined.errors import ApiError
from determined_master.metrics.report import Report
from determined_master.metrics.store import QUICK_REPORTS, MetricStore


class BatchStore:
    """Implements the group-commit writer's Store. An answer has one entry for each report: None, or its refusal."""

    def __init__(self, metrics: MetricStore) -> None:
        self._metrics = metrics

    def apply(self, connection: Connection, operations: Sequence[Sequence[Report]]) -> list[list[ApiError | None]]:
        answers = iter(self._metrics.apply(connection, list(chain.from_iterable(operations))))
        return [list(islice(answers, len(batch))) for batch in operations]

    def is_quick(self, operations: Sequence[Sequence[Report]]) -> bool:
        is_small = sum(map(len, operations)) <= QUICK_REPORTS  # first, because most batches are larger
        return is_small and self._metrics.is_quick(list(chain.from_iterable(operations)))

    def rolled_back(self) -> None:
        self._metrics.rolled_back()

    def topics(self, operations: Sequence[Sequence[Report]]) -> set[str]:
        kinds = {report.group: report for batch in operations for report in batch}.values()
        return self._metrics.topics([*kinds, *(batch[0] for batch in operations if batch)])
