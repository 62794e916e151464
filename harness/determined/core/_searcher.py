"""The deprecated searcher operations: a single operation of the configured length."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from determined.core._train import TrainContext


class Unit(Enum):
    """Unit of a searcher length."""

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherOperation:
    """A request to train up to ``length``, validate and report completion.

    :meth:`SearcherContext.operations` yields it.

    Args:
        length: total length to train to, in the unit of ``searcher.max_length``.
        train: receives the reported progress.
        is_chief: this worker has rank 0.
    """

    def __init__(self, length: int, train: TrainContext, *, is_chief: bool) -> None:
        self.length = length
        self._train = train
        self._is_chief = is_chief
        self._completed = False

    def report_progress(self, length: float) -> None:
        """Reports the progress of this operation to the master.

        Args:
            length: completed length, in the unit of :attr:`length`.

        Raises:
            RuntimeError: this worker is not the chief.
        """
        if not self._is_chief:
            raise RuntimeError("report_progress may be called only by the chief (rank 0)")
        self._train.report_progress(min(1.0, length / self.length) if self.length else 1.0)

    def report_completed(self, searcher_metric: float) -> None:
        """Marks the operation as completed.

        Args:
            searcher_metric: value of the searcher's metric; the search uses the reported validation metrics instead.

        Raises:
            RuntimeError: the operation was completed before.
        """
        if self._completed:
            raise RuntimeError("report_completed was called twice for one operation")
        self._completed = True


class SearcherContext:
    """The deprecated searcher operations: ``core_context.searcher``. Use ``det.get_cluster_info().trial`` instead.

    :func:`determined.core.init` makes it.
    """

    def __init__(self, config: dict[str, Any], train: TrainContext, *, is_chief: bool) -> None:
        self._length, self._unit = _length((config.get("searcher") or {}).get("max_length"))
        self._train = train
        self._is_chief = is_chief

    def operations(self, *_: object, **__: object) -> Iterator[SearcherOperation]:
        """Yields one operation of length ``searcher.max_length``, or none if the configuration has no such length.

        All arguments are accepted for compatibility and ignored.
        """
        if self._length is not None:
            yield SearcherOperation(self._length, self._train, is_chief=self._is_chief)

    def get_configured_units(self) -> Unit | None:
        """Returns the unit of ``searcher.max_length``; None for a plain number."""
        return self._unit


class DummySearcherContext(SearcherContext):
    """The searcher context off the cluster: yields one operation.

    Args:
        train: receives the reported progress.
        length: length of the operation.
        is_chief: this worker has rank 0.
    """

    def __init__(self, train: TrainContext, length: int = 1, *, is_chief: bool = True) -> None:
        super().__init__({"searcher": {"max_length": length}}, train, is_chief=is_chief)


def _length(value: Any) -> tuple[int | None, Unit | None]:  # noqa: ANN401  # decoded JSON
    if value is None:
        return None, None
    if isinstance(value, int):
        return value, None
    name, number = next(iter(value.items()))
    return int(number), Unit(str(name).upper())
