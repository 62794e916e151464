"""Progress line: bar, rate, remaining time, best metric, or the reason for waiting."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
    started: float | None
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
            started=_seconds(facts.get("startedAt")),
            waiting=facts.get("waiting") or None,
        )

    def render(self, now: float) -> str:
        """Returns one line.

        >>> TrialProgress("RUNNING", 0.5, 100, 0.25, "loss", 0.0, None).render(50.0)
        '[############------------]  50% 100 steps 2/s 0:50 to go loss 0.25'
        """
        if self.waiting:
            return f"waiting: {self.waiting}"
        done = int(self.share * WIDTH)
        parts = [f"[{'#' * done}{'-' * (WIDTH - done)}] {self.share * 100:3.0f}%", f"{self.steps} steps"]
        elapsed = now - self.started if self.started is not None else 0.0
        if elapsed > 0 and self.steps:
            parts.append(_rate(self.steps / elapsed))
        if elapsed > 0 and 0.0 < self.share < 1.0:
            parts.append(f"{_clock(elapsed * (1 - self.share) / self.share)} to go")
        if self.best is not None:
            parts.append(f"{self.metric} {self.best:.4g}")
        if self.state not in ("RUNNING", "ACTIVE"):
            parts.append(self.state.lower())
        return " ".join(parts)


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


def _seconds(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
