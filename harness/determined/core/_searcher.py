"""The deprecated searcher operations: one, of the configured length."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from determined.core._train import TrainContext


class Unit(Enum):
    """What a searcher length counts."""

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherOperation:
    """Train up to ``length``, validate, report completion."""

    def __init__(self, length: int, train: TrainContext, *, is_chief: bool) -> None:
        self.length = length
        self._train = train
        self._is_chief = is_chief
        self._completed = False

    def report_progress(self, length: float) -> None:
        """How much of ``length`` is done."""
        if not self._is_chief:
            raise RuntimeError("report_progress is for the chief (rank 0) alone")
        self._train.report_progress(min(1.0, length / self.length) if self.length else 1.0)

    def report_completed(self, searcher_metric: float) -> None:
        """The operation is done."""
        if self._completed:
            raise RuntimeError("report_completed was called twice for one operation")
        self._completed = True


class SearcherContext:
    """``core_context.searcher``; deprecated: ``det.get_cluster_info().trial`` and the configuration say the same."""

    def __init__(self, config: dict[str, Any], train: TrainContext, *, is_chief: bool) -> None:
        self._length, self._unit = _length((config.get("searcher") or {}).get("max_length"))
        self._train = train
        self._is_chief = is_chief

    def operations(self, *_: Any, **__: Any) -> Iterator[SearcherOperation]:
        """One operation of ``searcher.max_length``; none where the configuration has no such length."""
        if self._length is not None:
            yield SearcherOperation(self._length, self._train, is_chief=self._is_chief)

    def get_configured_units(self) -> Unit | None:
        """The unit of ``searcher.max_length``; ``None`` for a bare number."""
        return self._unit


class DummySearcherContext(SearcherContext):
    """Off the cluster: one operation of the given length."""

    def __init__(self, train: TrainContext, length: int = 1, *, is_chief: bool = True) -> None:
        super().__init__({"searcher": {"max_length": length}}, train, is_chief=is_chief)


def _length(value: Any) -> tuple[int | None, Unit | None]:
    if value is None:
        return None, None
    if isinstance(value, int):
        return value, None
    name, number = next(iter(value.items()))
    return int(number), Unit(str(name).upper())
