"""Data of an engine: the trial takes micro batches from an iterator, so the position is the number taken."""

from collections.abc import Iterator
from typing import Any

from determined.pytorch._data import Data, TrainingSource
from determined.pytorch._passes import PassStates


class Stream:
    """The micro batches of one slot, epoch after epoch without end; ``taken`` is the position."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._source: Iterator[Any] | None = None
        self.taken = 0

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Any:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
        batch = next(self._opened(), self)
        if batch is self:
            self.close()  # the epoch's end
            batch = next(self._opened(), self)
            if batch is self:
                raise RuntimeError(f"the data loader ended before its {len(self._data)} batches")
        self.taken += 1
        return batch

    def close(self) -> None:
        """Stops a loader's workers; the next batch comes from the same position."""
        source, self._source = self._source, None
        stop = getattr(source, "_shutdown_workers", None) or getattr(source, "close", None)
        if stop is not None:
            stop()

    def _opened(self) -> Iterator[Any]:
        if self._source is None:
            epoch, start = divmod(self.taken, len(self._data))
            self._source = self._data.epoch(epoch, start)
        return self._source


class TrainingData:
    """Yields the stream once per batch; an epoch has as many batches as fit completely into the data, at least one."""

    def __init__(self, data: TrainingSource, micro_batches: int) -> None:
        if not len(data):
            raise ValueError("the training data loader has no batches")
        self._data = data
        self.micro_batches = micro_batches
        self.stream = Stream(data)
        self._length = max(1, len(data) // micro_batches)

    def __len__(self) -> int:
        return self._length

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yields the stream for each remaining batch; the stream keeps its own position."""
        try:
            for _ in range(start, self._length):
                yield self.stream
        finally:
            self.stream.close()

    def states(self) -> PassStates:
        """Returns the states of the sources that have ``state_dict``."""
        return self._data.states()

    def load_states(self, states: PassStates) -> None:
        """Takes the states of a checkpoint."""
        self._data.load_states(states)


class ValidationData:
    """Yields one pass over the data once for each of its batches."""

    def __init__(self, data: Data) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yields an iterator over the whole data, as often as it has batches."""
        stream = _Pass(self._data)
        try:
            for _ in range(len(self._data)):
                yield stream
        finally:
            stream.close()


class _Pass(Stream):
    """Raises an error at the end of the data. Slots with different numbers of batches would wait for each other."""

    def __next__(self) -> Any:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
        if self.taken >= len(self._data):
            raise RuntimeError("evaluate_batch takes more than one batch per call, and the validation data has ended")
        return super().__next__()
