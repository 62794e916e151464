"""Plan of a search: its brackets, their rungs, and how many trials train how long. Pure; expects a checked section."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from determined.searcher.sampling import grid_size

HALVING = ("adaptive_asha", "async_halving")
"""The searchers that compare trials at rungs and stop the worse ones."""
IN_TASK = ("search_method", "optuna")
"""The searchers whose method runs in a task, outside of the master."""


class TrainingTime(NamedTuple):
    """How long a trial may train.

    ``unit`` is ``batches``, ``epochs``, ``records`` or the name of a validation metric. ``is_metric`` is False for a
    unit of ``max_length`` that is computed from the number of batches.
    """

    unit: str
    maximum: int
    is_metric: bool = True


@dataclass(frozen=True)
class Bracket:
    """Trials that are compared with each other. ``units``: the training time of each rung, in ascending order.
    ``concurrent``: how many train at the same time."""

    units: tuple[int, ...]
    trials: int
    concurrent: int


class PlannedLength(NamedTuple):
    """``trials`` trials train for ``length``; None is the full length, which the search does not know."""

    trials: int
    length: int | None


def training_time(searcher: Mapping[str, Any]) -> TrainingTime:
    """Returns the training time of a halving search, from ``max_time`` or else from ``max_length``.

    >>> training_time({"time_metric": "epochs", "max_time": 8})
    TrainingTime(unit='epochs', maximum=8, is_metric=True)
    >>> training_time({"max_length": {"records": 500}})
    TrainingTime(unit='records', maximum=500, is_metric=False)
    """
    if searcher.get("max_time") is not None:
        return TrainingTime(searcher["time_metric"], searcher["max_time"])
    length = searcher["max_length"]
    if isinstance(length, int):
        return TrainingTime("batches", length, is_metric=False)
    unit, maximum = next((unit, number) for unit, number in length.items() if number is not None)
    return TrainingTime(unit, maximum, is_metric=False)


def rung_units(maximum: int, divisor: float, count: int) -> tuple[int, ...]:
    """Returns the training time of each rung; the last one is ``maximum``.

    >>> rung_units(64, 4, 3)
    (4, 16, 64)
    """
    units, power = [], 1.0
    for _ in range(count):
        units.append(max(1, math.floor(maximum / power)))
        power *= divisor
    return tuple(reversed(units))


def brackets(
    searcher: Mapping[str, Any],
    *,
    max_trials: int | None = None,
    max_concurrent: int | None = None,
    rungs: Sequence[int] | None = None,
) -> tuple[Bracket, ...]:
    """Returns the brackets of a halving search, the one with most rungs first.

    Args:
        searcher: the section of the configuration.
        max_trials: another number of trials for the same brackets, in a search that was edited.
        max_concurrent: another number of concurrent trials.
        rungs: the number of rungs of each bracket of that search.

    >>> [(b.units, b.trials) for b in brackets({"name": "adaptive_asha", "max_trials": 16, "time_metric": "batches",
    ...     "max_time": 64, "divisor": 4, "max_rungs": 5, "mode": "standard", "max_concurrent_trials": 16})]
    [((4, 16, 64), 12), ((16, 64), 4)]
    """
    divisor, maximum = float(searcher["divisor"]), training_time(searcher).maximum
    trials = searcher["max_trials"] if max_trials is None else max_trials
    limit = (searcher.get("max_concurrent_trials") or 0) if max_concurrent is None else max_concurrent
    if searcher["name"] == "async_halving":
        rungs = [searcher["num_rungs"]]
        shares = [trials]
        concurrent = [limit or _within(math.floor(divisor ** (rungs[0] - 1)), 1, trials)]
    else:
        rungs = rungs or bracket_rungs(searcher)
        shares = _shares(trials, rungs, divisor)
        concurrent = _concurrent(limit, shares, divisor)
    return tuple(
        Bracket(rung_units(maximum, divisor, count), share, min(at_once, share))
        for count, share, at_once in zip(rungs, shares, concurrent, strict=True)
    )


def bracket_rungs(searcher: Mapping[str, Any]) -> list[int]:
    """Returns the number of rungs of each bracket of ``adaptive_asha``, in descending order.

    >>> bracket_rungs({"max_trials": 16, "max_length": 64, "divisor": 4, "max_rungs": 5, "mode": "conservative"})
    [3, 2, 1]
    """
    if searcher.get("bracket_rungs"):
        return sorted(searcher["bracket_rungs"], reverse=True)
    divisor, maximum = float(searcher["divisor"]), training_time(searcher).maximum
    most = min(
        searcher["max_rungs"],
        *(_whole_logarithm(value, divisor, searcher["max_rungs"]) + 1 for value in (maximum, searcher["max_trials"])),
    )
    lowest = {"aggressive": most, "standard": (most - 1) // 2 + 1, "conservative": 1}[searcher["mode"]]
    return list(range(most, lowest - 1, -1))


def planned_lengths(config: Mapping[str, Any]) -> list[PlannedLength]:
    """Returns how many trials of a configuration train how long, the shortest first.

    A halving search is planned as if each rung kept its share; one that compares results as they arrive may keep a
    few more.
    """
    searcher = config["searcher"]
    name = searcher["name"]
    if name not in HALVING:
        numbers = {"single": 1, "list": len(searcher.get("trials") or ())}
        if name == "grid":
            numbers["grid"] = grid_size(config["hyperparameters"])
        return [PlannedLength(numbers.get(name) or searcher["max_trials"], _full_length(searcher))]
    found: dict[int, int] = {}
    for bracket in brackets(searcher):
        for unit, number in zip(bracket.units, planned_stops(bracket, float(searcher["divisor"])), strict=True):
            found[unit] = found.get(unit, 0) + number
    return [PlannedLength(found[unit], unit) for unit in sorted(found) if found[unit]]


def planned_stops(bracket: Bracket, divisor: float) -> list[int]:
    """Returns for each rung of a bracket how many trials end there.

    >>> planned_stops(Bracket((4, 16, 64), 12, 12), 4)
    [9, 2, 1]
    """
    reach = [bracket.trials]
    for _ in bracket.units[1:]:
        reach.append(max(1, math.floor(reach[-1] / divisor)))
    return [here - after for here, after in zip(reach, [*reach[1:], 0], strict=True)]


def _full_length(searcher: Mapping[str, Any]) -> int | None:
    return training_time(searcher).maximum if searcher.get("max_length") is not None else None


def _whole_logarithm(value: float, base: float, most: int) -> int:
    """Returns the largest whole power of ``base`` that is not above ``value``; exact where logarithms are rounded."""
    power, found = base, 0
    while power <= value and found < most:
        power *= base
        found += 1
    return found


def _shares(trials: int, rungs: Sequence[int], divisor: float) -> list[int]:
    """Divides the trials among the brackets: cheap ones, with more rungs, get more."""
    weights = [divisor ** (count - 1) / count for count in rungs]
    shares = [max(1, math.floor(trials * weight / sum(weights))) for weight in weights]
    shares[0] = max(1, shares[0] + trials - sum(shares))
    return shares


def _concurrent(limit: int, shares: Sequence[int], divisor: float) -> list[int]:
    if limit == 0:
        return [max(shares[-1], math.floor(divisor))] * len(shares)
    quotient, rest = divmod(max(limit, len(shares)), len(shares))
    return [quotient + (number < rest) for number in range(len(shares))]


def _within(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
