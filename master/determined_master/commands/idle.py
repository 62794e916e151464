"""When a service ends because nobody uses it. Pure.

Use is an open stream. The time of the last use is stored now and then, so a restart of the master changes little: a
service that was used just before keeps its whole time, less the moments since the time was stored, and one that nobody
uses does not begin anew. Streams that the restart has cut are opened again within a minute, so after a start nothing
ends for a while.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from determined_master.streams.uses import Use

GRACE_SECONDS = 300.0
"""Time after the start of the master in which cut sessions and agents come back."""
STORE_SECONDS = 30.0
"""How old the stored time of the last use may become before it is stored again."""


class Service(NamedTuple):
    """A service that is ready. ``last_used_at``: as stored."""

    ready_at: datetime
    last_used_at: datetime | None


class Step(NamedTuple):
    """What to do with a service: store the time of the last use, or end it for a reason; look again after ``wait``."""

    last_used_at: datetime | None = None
    reason: str = ""
    wait: float | None = None


def allowed(asked: float | None, limit: float | None) -> float | None:
    """Returns the timeout in seconds that holds, None for never. ``asked``: None for the default, 0 for never.

    >>> allowed(None, None), allowed(0, 600), allowed(60, 600), allowed(3600, 600)
    (None, 600, 60, 600)
    """
    if not asked:
        return limit
    return asked if limit is None else min(asked, limit)


def limit_warning(asked: float | None, limit: float | None, noun: str) -> str:
    """Returns a sentence about a timeout that is longer than the limit; empty if it is not."""
    if asked is None or limit is None or (asked and asked <= limit):
        return ""
    wanted = "never to end when it is idle" if not asked else f"idle_timeout {in_words(asked)}"
    return f"the {noun} asked for {wanted}; this cluster ends a {noun} that was idle for {in_words(limit)} (max_idle)"


def idle_since(service: Service, use: Use, now: datetime) -> datetime | None:
    """Returns since when nobody uses a service; None while somebody does. A time that a clock which was put back has
    left in the future does not count."""
    if use.open_streams:
        return None
    return max((at for at in _times(service, use) if at <= now), default=now)


def decide(service: Service, use: Use, timeout: float | None, *, began_at: datetime, now: datetime) -> Step:
    """Returns what to do with a service now.

    Args:
        service: the service, which is ready.
        use: its use since the start of the master.
        timeout: seconds without use after which it ends, or None.
        began_at: the start of the master.
        now: the time.
    """
    since = idle_since(service, use, now)
    stored = service.last_used_at
    waits = [] if since else [STORE_SECONDS]
    new = _to_store(service, since, now)
    if new is not None and stored is not None and stored <= now:
        age = (new - stored).total_seconds()
        if age < STORE_SECONDS:
            waits.append(STORE_SECONDS - age)
            new = None
    if new is None and since is not None and timeout is not None:
        left = (since + timedelta(seconds=timeout) - now).total_seconds()
        grace = min(timeout, GRACE_SECONDS) - (now - began_at).total_seconds() if began_at <= now else 0.0
        if max(left, grace) <= 0:
            return Step(reason=f"idle for {in_words(timeout)}")
        waits.append(max(left, grace))
    return Step(new, wait=0.0 if new is not None else min(waits, default=None))


def _to_store(service: Service, since: datetime | None, now: datetime) -> datetime | None:
    """Returns the time of the last use if it is not the stored one."""
    known = service.last_used_at or service.ready_at
    if since is None or known > now:
        return now
    return since if since > max(known, service.ready_at) else None


def _times(service: Service, use: Use) -> Iterator[datetime]:
    yield service.ready_at
    if service.last_used_at is not None:
        yield service.last_used_at
    if use.last_end is not None:
        yield use.last_end


def in_words(seconds: float) -> str:
    """Returns a duration in words.

    >>> in_words(1800), in_words(5400), in_words(1), in_words(90061)
    ('30 minutes', '1 hour 30 minutes', '1 second', '1 day 1 hour 1 minute 1 second')
    """
    left, parts = round(seconds), []
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts) or "0 seconds"
