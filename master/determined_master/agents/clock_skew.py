"""Difference between the clocks of an agent and of the master: when it matters, and a sentence about it. Pure."""

from datetime import datetime

MAX_SKEW_SECONDS = 5
"""Smaller differences are not shown: they may come from a slow connection or a busy master."""
_LIMIT = 2**31 - 1


def skew_seconds(sent_at: float, now: datetime) -> int:
    """Returns by how many seconds the agent's clock is ahead of the master's; negative if it is behind.

    Returns 0 within ``MAX_SKEW_SECONDS``, and for agents of earlier versions, which send no time (0).
    """
    if not sent_at:
        return 0
    # An agent may send any number, also NaN.
    ahead = max(-_LIMIT, min(_LIMIT, sent_at - now.timestamp()))
    return round(ahead) if abs(ahead) > MAX_SKEW_SECONDS else 0


def has_changed(stored: int, measured: int) -> bool:
    """Returns True if a new measurement differs by more than the connection may explain."""
    return abs(stored - measured) > MAX_SKEW_SECONDS


def warning(agent_id: str, skew: int) -> str:
    """Returns a sentence about the clock of an agent; empty if it agrees with the master's.

    >>> warning("one", -7320)
    "the clock of agent one is 2 h 2 min behind the master's: times of its log lines and metrics are off by that"
    """
    if not skew:
        return ""
    side = "ahead of" if skew > 0 else "behind"
    return (
        f"the clock of agent {agent_id} is {_duration(abs(skew))} {side} the master's: "
        "times of its log lines and metrics are off by that"
    )


def _duration(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    hours, minutes = rest // 3600, rest % 3600 // 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"
