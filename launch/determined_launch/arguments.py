"""The command line that all launch layers share: ``[overrides --] (--trial m:C | script args…)``."""

import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class UsageError(Exception):
    """A launch line that cannot be used; its text is for the user."""


@dataclass(frozen=True)
class LaunchLine:
    """What a launch layer was asked for. ``command`` is what each worker runs."""

    overrides: tuple[str, ...]
    command: tuple[str, ...]


def parse(argv: Sequence[str], *, module: str, python: str) -> LaunchLine:
    """Splits a layer's arguments; script arguments stay as they are, a ``--`` among them too.

    Overrides are there only where the line begins with an option other than ``--trial``: so a script's own ``--``
    is never taken for the end of overrides.
    """
    words = list(argv)
    overrides: list[str] = []
    if words and words[0] == "--":
        words = words[1:]
    elif words and words[0].startswith("-") and not _is_trial(words[0]):
        if "--" not in words:
            raise UsageError(_unclosed(words, module))
        end = words.index("--")
        overrides, words = words[:end], words[end + 1 :]
    if not words:
        raise UsageError(f"nothing to run: python3 -m {module} [overrides --] (--trial module:Class | script args…)")
    return LaunchLine(tuple(overrides), tuple(_command(words, python)))


def _command(words: list[str], python: str) -> list[str]:
    if _is_trial(words[0]):
        trial, rest = _trial(words)
        if rest:
            raise UsageError(f"--trial takes a class and nothing after it; found: {shlex.join(rest)}")
        return [python, "-m", "determined.exec.harness", trial]
    if words[0].endswith(".py"):
        return [python, *words]
    return words


def _is_trial(word: str) -> bool:
    return word == "--trial" or word.startswith("--trial=")


def _trial(words: list[str]) -> tuple[str, list[str]]:
    if words[0].startswith("--trial="):
        return words[0].removeprefix("--trial="), words[1:]
    if len(words) < 2:
        raise UsageError("--trial needs a class: --trial module:Class")
    return words[1], words[2:]


def _unclosed(words: list[str], module: str, which: Callable[[str], str | None] = shutil.which) -> str:
    """The text for overrides without their end, with the line as it was probably meant."""
    begin = next(
        (
            index
            for index, word in enumerate(words)
            if _is_trial(word) or word.endswith(".py") or (not word.startswith("-") and which(word) is not None)
        ),
        len(words),
    )
    tail = shlex.join(words[begin:]) or "train.py"
    return (
        f"options for the launcher must end with ' -- ' before what is to be run. Write:\n"
        f"  python3 -m {module} {shlex.join(words[:begin])} -- {tail}"
    )
