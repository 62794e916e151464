"""``det completion``: prints a completion script that is generated from the command table."""

from collections.abc import Iterator
from typing import NamedTuple

from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ("completion",)

VERBS = (
    Command(
        "completion",
        "print a completion script for bash, zsh or fish",
        "determined_cli.completion.scripts:run",
        (argument("shell", choices=("bash", "zsh", "fish")),),
        examples=("source <(det completion bash)", "det completion fish > ~/.config/fish/completions/det.fish"),
    ),
)

FILES = "files"
KINDS = {
    "command_id": "command",
    "shell_id": "shell",
    "experiment_id": "experiment",
    "trial_id": "trial",
    "uuid": "checkpoint",
    "agent_id": "agent",
    "target_user": "user",
    "config_file": FILES,
    "folder": FILES,
    "command": FILES,
    "script": FILES,
}
"""Name of the first argument → kind of ids to complete, or files."""


class Words(NamedTuple):
    """What can follow a verb: verbs below it, options, values of its first argument, and a kind of ids."""

    path: tuple[str, ...]
    inner: tuple[str, ...]
    flags: tuple[str, ...]
    values: tuple[str, ...]
    kind: str | None


def words() -> Iterator[tuple[str, list[Words]]]:
    """Yields each noun, aliases included, with its verbs. The path of a noun without verbs is empty."""
    from importlib import import_module

    from determined_cli.command_table import NOUNS

    for noun, (name, _, short) in NOUNS.items():
        module = import_module(name)
        if noun in module.NOUNS_WITHOUT_VERBS:
            verb = next(each for each in module.VERBS if each.name == noun)
            found = [_of_verb((), verb)]
        else:
            found = [each for verb in module.VERBS for each in _with_aliases((), verb)]
        for each in (noun, *short):
            yield each, found


def _with_aliases(above: tuple[str, ...], verb: Command) -> Iterator[Words]:
    for name in verb.names:
        yield _of_verb((*above, name), verb)
        for inner in verb.verbs:
            yield from _with_aliases((*above, name), inner)


def _of_verb(path: tuple[str, ...], verb: Command) -> Words:
    from argparse import ArgumentParser

    parser = ArgumentParser(add_help=False)
    for add in verb.arguments:
        add(parser)
    names = parser._option_string_actions  # noqa: SLF001  # argparse has no public list of its options
    flags = sorted(name for name in names if name.startswith("--"))
    first = next(iter(parser._get_positional_actions()), None)  # noqa: SLF001  # nor of its positional arguments
    values = tuple(map(str, first.choices or ())) if first is not None else ()
    kind = KINDS.get(first.dest) if first is not None else None
    if kind == FILES or "--data" in flags:
        kind = FILES
    return Words(path, tuple(inner.name for inner in verb.verbs), (*flags, "--help"), values, kind)
