"""One figure: candidate and reference are measured in turn, and the median of the ratios is reported."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field


class Skipped(Exception):
    """A figure that cannot be measured here. The text names the reason."""


@dataclass
class Figure:
    """A measured figure. ``goal``: bound on the median ratio; ``at_least``: True if it is a lower bound."""

    name: str
    goal: float
    ratios: list[float] = field(default_factory=list)
    at_least: bool = False
    unit: str = "x"
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    @property
    def is_met(self) -> bool:
        return self.median >= self.goal if self.at_least else self.median <= self.goal

    def line(self) -> str:
        sign = "≥" if self.at_least else "≤"
        spread = f"[{min(self.ratios):.2f}..{max(self.ratios):.2f}] n={len(self.ratios)}"
        verdict = "met" if self.is_met else "MISSED"
        return f"{self.name:<58} {self.median:8.2f} {self.unit} {spread:<24} goal {sign} {self.goal:g}  {verdict}  {self.note}"


def paired(candidate: Callable[[], float], reference: Callable[[], float], rounds: int) -> tuple[list[float], str]:
    """Returns the ratios candidate/reference, with the order swapped each round, and both medians as text."""
    mine: list[float] = []
    theirs: list[float] = []
    for number in range(rounds):
        if number % 2:
            theirs.append(reference())
            mine.append(candidate())
        else:
            mine.append(candidate())
            theirs.append(reference())
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    return ratios, f"{statistics.median(mine):.4g} against {statistics.median(theirs):.4g}"
