"""Signs of a trial that is alive and of no use: metrics that are not finite, and silence. Pure."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from determined.config.launch import Health
from determined_master.json_numbers import number

MAX_NAME_CHARACTERS = 200


def health_of(config: Mapping[str, Any]) -> Health:
    """Returns the section of a stored configuration; the defaults for one of an earlier version."""
    return Health.model_validate(config.get("health") or {})


def not_finite(group: str, metrics: Mapping[str, Any], steps: int | None) -> str:
    """Returns a sentence about the first metric of a report that is NaN or infinite, or an empty text.

    >>> not_finite("validation", {"loss": float("nan")}, 120)
    'the validation metric loss is NaN at step 120'
    """
    for name, value in metrics.items():
        figure = number(value)
        if figure is not None and not math.isfinite(figure):
            word = "NaN" if math.isnan(figure) else "infinite"
            return f"the {group} metric {name[:MAX_NAME_CHARACTERS]} is {word} at step {steps}"
    return ""


def warning_line(sentence: str, *, stops: bool) -> str:
    """Returns the line of the log about the first metric that is not finite."""
    return f"{sentence}; {'the trial is stopped' if stops else 'the trial goes on'} (health.nan: {_NAN[stops]})"


_NAN = {False: "warn", True: "stop"}


def stop_reason(sentence: str) -> str:
    """Returns why a trial failed that was stopped because of such a metric."""
    return f"{sentence} (health.nan: stop)"


def silence(last_report_at: datetime | None, ready_at: datetime | None, silent_after: float, now: datetime) -> str:
    """Returns a note on a running trial that has reported nothing for ``silent_after`` seconds, or an empty text.

    The time begins with its last report, or with the start of its attempt if that is later.
    """
    if ready_at is None or not silent_after:
        return ""
    since = ready_at if last_report_at is None else max(last_report_at, ready_at)
    seconds = (now - since).total_seconds()
    return f"has reported nothing for {_words(seconds)}" if seconds >= silent_after else ""


def _words(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
