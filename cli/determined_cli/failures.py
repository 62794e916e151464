"""Formats causes of failures in lines of at most 80 columns."""

import textwrap
from collections.abc import Mapping
from typing import Any

WIDTH = 80


def shorten(text: str, width: int) -> str:
    """Returns ``text`` on one line of at most ``width`` characters.

    >>> shorten("experiment 5 failed: ValueError", 20)
    'experiment 5 failed…'
    """
    line = printable(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun.

    >>> counted(1, "job"), counted(2, "job")
    ('1 job', '2 jobs')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def failure_text(attempt: Mapping[str, Any], width: int | None = None) -> str:
    """Returns an attempt's failure, wrapped to ``width`` columns and at most 80."""
    return _wrapped(f"attempt {attempt['runId']} failed: {attempt['failure']}", min(width or WIDTH, WIDTH))


def print_failure(trial: Mapping[str, Any], max_restarts: int) -> None:
    """Prints why a trial failed, below an empty line; prints nothing if it did not fail."""
    if trial.get("failure"):
        attempt = int(trial.get("restarts") or 0) + 1
        of = f"attempt {attempt} of {max(max_restarts + 1, attempt)}"
        text = _wrapped(f"trial {trial['id']} failed on {of}: {trial['failure']}")
        print(f"\n{text}")


def print_note(trial_id: int, note: str | None) -> None:
    """Prints what is wrong with a trial that has not failed, below an empty line; prints nothing without a note."""
    if note:
        print(f"\n{_wrapped(f'trial {trial_id}: {note}')}")


def printable(text: str) -> str:
    """Returns ``text`` without control characters."""
    return "".join(each if each.isprintable() else " " for each in text)


def _wrapped(text: str, width: int = WIDTH) -> str:
    return textwrap.fill(printable(text), width, subsequent_indent="  ", break_on_hyphens=False)
