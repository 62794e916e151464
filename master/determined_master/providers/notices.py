"""Notices of machines that will end: lines of a file, or of the output of a command, that an admin provides.

Each line has the id of an agent, ``leaves`` with a time or ``gone``, and the reason::

    gpu-1f3a leaves 2026-11-27T12:30:00Z spot notice of the provider
    gpu-77c0 gone the machine was preempted
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from determined_master.providers.provider import Observation, ObservedState

logger = logging.getLogger(__name__)

MAX_BYTES = 1 << 18
"""More than a line for each agent that a pool can have."""
MAX_REASON_CHARACTERS = 200


class NoticeError(ValueError):
    """A line that is no notice; the text names it and says what is wrong."""


def read_file(path: Path) -> str:
    """Returns the content of a file, empty if there is none. Raises OSError, and NoticeError if it is too long."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return ""
    if len(content) > MAX_BYTES:
        raise NoticeError(f"{path}: longer than {MAX_BYTES} bytes")
    return content.decode(errors="replace")


def parse(text: str, source: str) -> Mapping[str, Observation]:
    """Returns what the lines say, by agent; of several lines about one agent the last one counts. Raises NoticeError.

    >>> parse("a gone it was preempted", "notices")["a"].reason
    'it was preempted'
    """
    notices = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if words:
            try:
                notices[words[0]] = _observation(words[1:])
            except ValueError as error:
                raise NoticeError(f"{source}:{number}: {error}") from error
    return notices


def _observation(words: list[str]) -> Observation:
    match words:
        case ["leaves", time, *reason]:
            return Observation(ObservedState.RUNNING, _reason(reason, "its provider says so"), _time(time))
        case ["gone", *reason]:
            return Observation(ObservedState.GONE, _reason(reason, "its provider says that it has ended"))
        case _:
            raise ValueError("expected AGENT leaves TIME REASON, or AGENT gone REASON")


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(f'"{text[:40]}" is no time with a time zone, such as 2026-11-27T12:30:00Z')
    return time.astimezone(UTC)


def _reason(words: list[str], otherwise: str) -> str:
    text = "".join(c for c in " ".join(words) if c.isprintable())
    return text[:MAX_REASON_CHARACTERS] or otherwise
