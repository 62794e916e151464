"""Progress line: bar, rate, remaining time, best metric, or the reason for waiting."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from determined.client.numbers import from_wire

WIDTH = 24


@dataclass(frozen=True)
class TrialProgress:
    """The answer of ``/detent/trials/{id}/progress``."""

    state: str
    share: float
    steps: int
    best: float | None
    metric: str
    waiting: str | None

    @classmethod
    def from_wire(cls, facts: dict[str, Any]) -> "TrialProgress":
        """Parses an answer. Missing fields count as unknown."""
        share = from_wire(facts.get("progress"))
        best = from_wire(facts.get("bestMetric"))
        return cls(
            state=str(facts.get("state") or "").removeprefix("STATE_"),
            share=min(1.0, max(0.0, float(share))) if isinstance(share, (int, float)) and share == share else 0.0,
            steps=int(facts.get("steps") or 0),
            best=float(best) if isinstance(best, (int, float)) else None,
            metric=str(facts.get("metricName") or "metric"),
            waiting=facts.get("waiting") or None,
        )

    def render(self, pace: "Pace | None" = None) -> str:
        """Returns one line. ``pace``: how the trial has advanced.

        >>> TrialProgress("RUNNING", 0.5, 100, 0.25, "loss", None).render(Pace(2.0, 0.01))
        '[############------------]  50% 100 steps 2/s 0:50 to go loss 0.25'
        """
        if self.waiting:
            return f"waiting: {self.waiting}"
        done = int(self.share * WIDTH)
        parts = [f"[{'#' * done}{'-' * (WIDTH - done)}] {self.share * 100:3.0f}%", f"{self.steps} steps"]
        if pace is not None and pace.steps_per_second > 0:
            parts.append(_rate(pace.steps_per_second))
        if pace is not None and pace.share_per_second > 0 and 0.0 < self.share < 1.0:
            parts.append(f"{_clock((1 - self.share) / pace.share_per_second)} to go")
        if self.best is not None:
            parts.append(f"{self.metric} {self.best:.4g}")
        if self.state not in ("RUNNING", "ACTIVE"):
            parts.append(self.state.lower())
        return " ".join(parts)


class Pace(NamedTuple):
    """How fast a trial advances; waits and pauses do not count."""

    steps_per_second: float
    share_per_second: float


class Stretch:
    """Watches a trial from look to look, and tells its pace since it has begun to advance.

    >>> stretch = Stretch()
    >>> first, later = (TrialProgress("RUNNING", steps / 200, steps, None, "loss", None) for steps in (100, 120))
    >>> stretch.pace(first, 0.0), stretch.pace(later, 10.0)
    (None, Pace(steps_per_second=2.0, share_per_second=0.01))
    """

    def __init__(self) -> None:
        self._first: tuple[TrialProgress, float] | None = None

    def pace(self, progress: TrialProgress, now: float) -> Pace | None:
        """Returns the pace; None until the trial has advanced. ``now``: seconds of any clock."""
        is_running = not progress.waiting and progress.state in ("RUNNING", "ACTIVE")
        if self._first is None or not is_running or progress.steps < self._first[0].steps:
            self._first = (progress, now) if is_running else None
            return None
        first, since = self._first
        if now <= since or progress.steps == first.steps:
            return None
        seconds = now - since
        return Pace((progress.steps - first.steps) / seconds, round((progress.share - first.share) / seconds, 9))


def _rate(rate: float) -> str:
    return f"{rate:.3g}/s" if rate >= 0.1 else f"{rate * 60:.3g}/min"


def _clock(seconds: float) -> str:
    """Formats seconds as minutes and seconds, with hours and days if there are any."""
    total = int(min(seconds, 10**9))
    days, rest = divmod(total, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    text = f"{hours}:{minutes:02}:{left:02}" if hours or days else f"{minutes}:{left:02}"
    return f"{days}d {text}" if days else text
