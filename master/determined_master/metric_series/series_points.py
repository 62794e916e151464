"""Points of one metric as columns, and their encoding in chunks. Pure."""

import math
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, Literal

from determined_master.json_numbers import number

Axis = Literal["batches", "epochs", "time"]
MAX_NAME_LENGTH = 1000
"""Maximum length of a metric's name; longer names are in reports and summaries, and have no curve."""
_HEAD = struct.Struct("<BBI")
_STEPS = struct.Struct("<qq")
_REGULAR, _EPOCHS = 1, 2
_VERSION = 1
_NO_EPOCH = struct.pack("=d", math.nan)


@dataclass(slots=True)
class Points:
    """Points in the order of their reports. ``times`` are microseconds; a missing epoch is NaN."""

    batches: "array[int]" = field(default_factory=lambda: array("q"))
    times: "array[int]" = field(default_factory=lambda: array("q"))
    epochs: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.values)

    def add(self, batches: int, time: int, epoch: float, value: float) -> None:
        self.batches.append(batches)
        self.times.append(time)
        self.epochs.append(epoch)
        self.values.append(value)

    def extend(self, more: "Points") -> None:
        self.batches.extend(more.batches)
        self.times.extend(more.times)
        self.epochs.extend(more.epochs)
        self.values.extend(more.values)

    @property
    def has_epochs(self) -> bool:
        # Compared as bytes: a hundred times as fast as one by one.
        return self.epochs.tobytes() != _NO_EPOCH * len(self.epochs)

    def part(self, start: int, stop: int) -> "Points":
        return Points(
            self.batches[start:stop], self.times[start:stop], self.epochs[start:stop], self.values[start:stop]
        )

    def take(self, places: Sequence[int]) -> "Points":
        if isinstance(places, range) and places.step == 1:
            return self.part(places.start, places.stop)
        return Points(
            array("q", [self.batches[i] for i in places]),
            array("q", [self.times[i] for i in places]),
            array("d", [self.epochs[i] for i in places]),
            array("d", [self.values[i] for i in places]),
        )

    def along(self, axis: Axis) -> "array[int] | array[float]":
        if axis == "batches":
            return self.batches
        return self.times if axis == "time" else self.epochs


def points_of(metrics: dict[str, Any]) -> tuple[float, list[tuple[str, float]]]:
    """Returns the epoch of a report, or NaN, and its numeric metrics."""
    figures = []
    for name, value in metrics.items():
        figure = value if type(value) is float else number(value)
        if figure is not None and len(name) <= MAX_NAME_LENGTH:
            figures.append((name, figure))
    epoch = number(metrics.get("epochs", metrics.get("epoch")))
    return epoch if epoch is not None and math.isfinite(epoch) else math.nan, figures


def dump(points: Points) -> bytes:
    """Encodes the columns one after the other; regular or empty columns take no space."""
    step = _step(points.batches)
    has_epochs = points.has_epochs
    flags = (_REGULAR if step is not None else 0) | (_EPOCHS if has_epochs else 0)
    first = _STEPS.pack(points.batches[0], step) if step is not None else points.batches.tobytes()
    parts = [_HEAD.pack(_VERSION, flags, len(points)), first, points.times.tobytes(), points.values.tobytes()]
    if has_epochs:
        parts.append(points.epochs.tobytes())
    return b"".join(parts)


def load(data: bytes) -> Points:
    points = Points()
    load_into(points, data)
    return points


def load_into(points: Points, data: bytes) -> None:
    """Adds the points of an encoded chunk."""
    _version, flags, count = _HEAD.unpack_from(data)
    at, size = _HEAD.size, 8 * count
    if flags & _REGULAR:
        start, step = _STEPS.unpack_from(data, at)
        points.batches.extend(range(start, start + step * count, step) if step else [start] * count)
        at += _STEPS.size
    else:
        points.batches.frombytes(data[at : at + size])
        at += size
    points.times.frombytes(data[at : at + size])
    points.values.frombytes(data[at + size : at + 2 * size])
    points.epochs.frombytes(data[at + 2 * size : at + 3 * size] if flags & _EPOCHS else _NO_EPOCH * count)


def _step(numbers: "array[int]") -> int | None:
    """Returns the common difference of neighbours, or None."""
    if len(numbers) < 2:
        return None
    step = numbers[1] - numbers[0]
    regular = all(b - a == step for a, b in pairwise(islice(numbers, 1, None)))
    return step if regular and -(2**62) < step < 2**62 else None
