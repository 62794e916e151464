"""Schedules of the learning rate: a rise from 0, then a cosine, a line or a constant."""

import functools
import math
from collections.abc import Callable

NAMES = ("cosine", "linear", "constant")


def check(name: str, warmup_steps_proportion: float, min_lr_ratio: float) -> None:
    """Raises ValueError if a schedule has no such name or a number is not from 0 to 1."""
    if name not in NAMES:
        raise ValueError(f"lr_scheduler_type is one of {', '.join(NAMES)}, not {name!r}")
    for what, value in (("warmup_steps_proportion", warmup_steps_proportion), ("min_lr_ratio", min_lr_ratio)):
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{what} is a part of the whole, from 0 to 1, not {value}")


def factor(
    name: str, warmup_steps_proportion: float, min_lr_ratio: float, *, total_steps: int
) -> Callable[[int], float]:
    """Returns the function that gives the learning rate at a step, as a part of the highest one.

    >>> rate = factor("linear", 0.5, 0.0, total_steps=4)
    >>> [rate(step) for step in range(5)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    warmup = math.ceil(warmup_steps_proportion * total_steps)
    return functools.partial(_factor, name, warmup, min_lr_ratio, total_steps)


def _factor(name: str, warmup: int, least: float, total: int, step: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    if name == "constant":
        return 1.0
    part = min(1.0, (step - warmup) / max(1, total - warmup))
    fall = part if name == "linear" else 0.5 * (1.0 - math.cos(math.pi * part))
    return 1.0 - (1.0 - least) * fall
