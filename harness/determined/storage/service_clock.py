"""The clock of a checkpoint store, as its error answers show it: a store refuses requests of a machine with another."""

import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

MAX_SKEW_SECONDS = 300
"""Stores allow 5 to 15 minutes; a smaller difference explains no refusal."""


def clock_difference(error: BaseException, now: float | None = None) -> str:
    """Returns a clause that says by how much this machine's clock differs from the store's; empty if it does not.

    Args:
        error: what a storage library raised; its causes are searched for the store's answer.
        now: time of this machine in seconds since the epoch; by default its clock's.
    """
    answered = _answered_at(error)
    if answered is None:
        return ""
    behind = answered.timestamp() - (time.time() if now is None else now)
    if abs(behind) <= MAX_SKEW_SECONDS:
        return ""
    minutes = round(abs(behind) / 60)
    size = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"the clock of this machine is {size} {'behind' if behind > 0 else 'ahead of'} the store's; set it"


def _answered_at(error: BaseException) -> datetime | None:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        date = _date(getattr(each, "response", None))
        if date is not None:
            return date
        each = each.__cause__ or each.__context__
    return None


def _date(response: object) -> datetime | None:
    """Returns the Date header of a botocore answer, which is a dictionary, or of one of azure's."""
    if isinstance(response, Mapping):
        headers = (response.get("ResponseMetadata") or {}).get("HTTPHeaders")
    else:
        headers = getattr(response, "headers", None)
    if not isinstance(headers, Mapping):
        return None
    text = headers.get("date") or headers.get("Date")
    try:
        return parsedate_to_datetime(text) if text else None
    except (TypeError, ValueError):
        return None
