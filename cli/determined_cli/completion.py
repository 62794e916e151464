"""``det completion``: prints a completion script that is generated from the command table."""

from typing import Any

from determined_cli.command import Command, argument

BARE = ("completion",)

VERBS = (
    Command(
        "completion",
        "print a completion script for bash, zsh or fish",
        "determined_cli.completion_scripts:run",
        (argument("shell", choices=("bash", "zsh", "fish")),),
        examples=("source <(det completion bash)", "det completion fish > ~/.config/fish/completions/det.fish"),
    ),
)


def words() -> dict[str, Any]:
    """Returns noun → verb → flags, aliases included."""
    from argparse import ArgumentParser
    from importlib import import_module

    from determined_cli.command_table import NOUNS

    found: dict[str, dict[str, list[str]]] = {}
    for noun, (name, _, short) in NOUNS.items():
        module = import_module(name)
        verbs = {}
        for verb in module.VERBS:
            parser = ArgumentParser(add_help=False)
            for add in verb.arguments:
                add(parser)
            names = parser._option_string_actions  # noqa: SLF001  # argparse has no public list of its options
            flags = sorted(name for name in names if name.startswith("--"))
            for each in verb.names:
                verbs[each] = [*(inner.name for inner in verb.verbs), *flags, "--help"]
        if noun in module.BARE:
            verbs = {"": verbs[noun]}
        for each in (noun, *short):
            found[each] = verbs
    return found
