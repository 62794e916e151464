"""Parses the command line that all launch layers share: ``[overrides --] (--trial m:C | script args…)``."""

import itertools
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from determined_launch.errors import UsageError as UsageError

HOROVOD = "determined.launch.horovod"
ROLES = "determined.launch.roles"
AUTO = "--autohorovod"


@dataclass(frozen=True)
class LaunchLine:
    """The parsed arguments of a launch layer. ``command`` is what each worker runs; for roles, their file."""

    overrides: tuple[str, ...]
    command: tuple[str, ...]
    is_auto: bool = False
    """True if ``--autohorovod`` was given: a trial with one slot then runs without horovod."""


def parse(argv: Sequence[str], *, module: str, python: str) -> LaunchLine:
    """Splits a layer's arguments. A script's arguments stay unchanged, also if ``--`` is among them.

    The line has overrides only if it begins with an option other than ``--trial``; then the first ``--`` ends them.
    Lines where that one seems to belong to the script are refused.
    """
    if module == ROLES:
        return _file(list(argv))
    words, is_auto = _without_auto(list(argv)) if module == HOROVOD else (list(argv), False)
    overrides: list[str] = []
    if words and words[0] == "--":
        words = words[1:]
    elif words and words[0].startswith("-") and not _is_trial(words[0]):
        if "--" not in words:
            raise UsageError(_unclosed(words, module))
        end = words.index("--")
        overrides, words = words[:end], words[end + 1 :]
        _check(overrides, words, module)
    if not words:
        raise UsageError(f"nothing to run: python3 -m {module} [overrides --] (--trial module:Class | script args…)")
    return LaunchLine(tuple(overrides), tuple(_command(words, python)), is_auto)


def _file(words: list[str]) -> LaunchLine:
    """Returns the line of the layer for roles, whose programs are in a file."""
    if len(words) != 1 or words[0].startswith("-"):
        raise UsageError(f"the layer for roles takes one file. Write:\n  python3 -m {ROLES} roles.json")
    return LaunchLine((), (words[0],))


def _without_auto(words: list[str]) -> tuple[list[str], bool]:
    """Removes ``--autohorovod`` where it is an option of the layer: as the first word, or behind the overrides.

    >>> _without_auto(["--verbose", "--", "--autohorovod", "train.py"])
    (['--verbose', '--', 'train.py'], True)
    >>> _without_auto(["train.py", "--", "--autohorovod"])
    (['train.py', '--', '--autohorovod'], False)
    """
    places = [0] if words else []
    if "--" in words and words[0].startswith("-") and not _is_trial(words[0]):
        places.append(words.index("--") + 1)
    at = next((place for place in places if words[place : place + 1] == [AUTO]), None)
    return (words, False) if at is None else (words[:at] + words[at + 1 :], True)


def _command(words: list[str], python: str) -> list[str]:
    if _is_trial(words[0]):
        trial, rest = _trial(words)
        if rest:
            raise UsageError(f"--trial takes one class and no script or further arguments; found: {shlex.join(rest)}")
        if ":" not in trial:
            raise UsageError(f"--trial needs a class: --trial module:Class; found: {trial}")
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


def _check(overrides: list[str], words: list[str], module: str) -> None:
    """Raises UsageError for overrides that cannot be options of the launcher."""
    if any(_is_trial(word) for word in overrides):
        if words:
            raise UsageError(f"--trial and a script exclude each other; found --trial and: {shlex.join(words)}")
        raise UsageError(_unclosed(overrides, module))
    for before, word in itertools.pairwise(overrides):
        # an option's value may be a file, but a file after a value is a script with a "--" of its own
        if word.endswith(".py") and not before.startswith("-"):
            raise UsageError(_unclosed([*overrides, "--", *words], module))


def _unclosed(words: list[str], module: str, which: Callable[[str], str | None] = shutil.which) -> str:
    """Returns the error text for overrides without a closing ``--``, with a corrected line as a suggestion."""
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
        f"options for the launcher must be separated from the program by ' -- '. Write:\n"
        f"  python3 -m {module} {shlex.join(words[:begin])} -- {tail}"
    )
