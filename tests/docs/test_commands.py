"""The commands in texts: each exists, with the flags that the text names."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from generate import command_line  # noqa: E402  # the path is set above

_TRACKED = subprocess.run(
    ["git", "ls-files", "README.md", "CONTRIBUTING.md", "client/README.md", "examples/*.md", "docs/*.md"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.splitlines()
TEXTS = sorted(path for path in _TRACKED if not path.startswith(("docs/architecture/", "docs/decisions/")))
_FENCE = re.compile(r"^ *```(?:console|text)?\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(det(?:-master|-agent)? [^`]+)`")
_BEGINNING = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?(det(?:-master|-agent)? .*)$")
MISSPELT_ON_PURPOSE = ("det experiment lst", "det NOUN")


def commands_in(text: str) -> Iterator[str]:
    """Yields the lines of blocks and the inline code that begin with one of the programs."""
    for block in _FENCE.findall(text):
        for line in block.splitlines():
            if found := _BEGINNING.match(line.strip()):
                yield re.split(r"  +| \|\| | \| | > | / ", found[1])[0]
    yield from (" ".join(code.split()) for code in _INLINE.findall(_FENCE.sub("", text)))


def flags_by_command() -> dict[str, set[str]]:
    """Returns the flags of each command, by all of its names."""
    flags_of: dict[str, set[str]] = {}
    for words, verb in command_line.commands():
        flags = {*command_line.flags(verb), "--help"}
        names = [words, *(f"{words.rpartition(' ')[0]} {alias}" for alias in verb.aliases)]
        for name in names:
            noun, _, rest = name.removeprefix("det ").partition(" ")
            for short in (noun, *command_line.command_table.NOUNS[noun][2]):
                flags_of[f"det {short} {rest}".strip()] = flags
    return flags_of


FLAGS_BY_COMMAND = flags_by_command()


def problem(command: str) -> str | None:
    """Returns the problem of a command, or None."""
    words = re.sub(r" (-[mu]) \S+", "", command).replace("[", " ").replace("]", " ")
    tokens = shlex.split(words.replace("…", "").replace("'", ""), comments=True)
    if tokens[0] != "det":
        return None
    name = next((" ".join(tokens[:n]) for n in (4, 3, 2) if " ".join(tokens[:n]) in FLAGS_BY_COMMAND), None)
    if name is None:
        nouns = {known.split()[1] for known in FLAGS_BY_COMMAND} | {"help", "--version"}
        return None if len(tokens) == 2 and tokens[1] in nouns else f"{command}: no such command"
    own = tokens[: tokens.index("--")] if "--" in tokens else tokens  # what follows belongs to another program
    given = {flag for token in own if token.startswith("-") for flag in flags_in(token)}
    unknown = given - FLAGS_BY_COMMAND[name]
    return f"{command}: {name} has no {', '.join(sorted(unknown))}" if unknown else None


def flags_in(word: str) -> list[str]:
    """Returns the flags in a word: ``-it`` is two.

    >>> flags_in("-it"), flags_in("--rank=1"), flags_in("-f")
    (['-i', '-t'], ['--rank'], ['-f'])
    """
    if word.startswith("--"):
        return [word.partition("=")[0]]
    return [f"-{letter}" for letter in word[1:]]


def without_missing_verbs(text: str) -> str:
    """Returns the text without the table of verbs that only Determined has."""
    head, found, rest = text.partition("| verb | instead |")
    return head + rest.partition("\n\n")[2] if found else text


@pytest.mark.parametrize("path", TEXTS)
def test_each_command_of_a_text_exists_with_its_flags(path: str) -> None:
    text = without_missing_verbs((ROOT / path).read_text(encoding="utf-8"))
    named = [command for command in commands_in(text) if not command.startswith(MISSPELT_ON_PURPOSE)]
    assert [reason for command in named if (reason := problem(command))] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```text\ndet up --detach\n```", None),
        ("`det e create config.yaml . -f`", None),
        ("```console\n$ det experiment lst\n```", "det experiment lst: no such command"),
        ("`det up --detatch`", "det up --detatch: det up has no --detatch"),
    ],
)
def test_problem_reports_a_command_or_flag_that_does_not_exist(text: str, expected: str | None) -> None:
    (command,) = commands_in(text)
    assert problem(command) == expected
