"""The verbs of every workflow (`det runner`, `det hydra`, …): what each does, its other words, and the shared flags.

The command table of a workflow passes its verbs through :func:`complete`, which refuses a table without one of them.
``tests/cli/test_workflow_verbs.py`` checks each workflow against this module.
"""

from __future__ import annotations

from determined_cli.command import Command, argument

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Mapping, Sequence

PURPOSES = {
    "init": "write an example that runs as it is; files that exist are left as they are",
    "check": "read what would run and print it; start and write nothing",
    "run": "run it",
    "status": "print the state of each job, from what the run has kept",
    "logs": "print the output of a run or of one of its jobs; -f follows it to its end",
    "stop": "end a run that has not ended",
    "retry": "run again what failed or was interrupted",
}
ALIASES: dict[str, tuple[str, ...]] = {"run": ("submit",), "stop": ("cancel",), "retry": ("rerun",)}
"""Words of other tools that every workflow takes too."""
FLAGS: dict[str, tuple[str, ...]] = {
    "run": ("--on", "--dry-run"),
    "logs": ("-f", "--follow"),
    "retry": ("--on", "--dry-run"),
}
"""Flags that a verb has in every workflow, with one meaning."""
TARGETS = {"local": "on this machine", "det": "on the cluster, as an experiment", "slurm": "as jobs of Slurm"}
"""Values of ``--on``."""

FOLLOW = argument("-f", "--follow", action="store_true", help="follow it until the run ends; Ctrl-C ends only this")
DRY_RUN = argument("--dry-run", action="store_true", help="print what would run; run nothing")


class Targets:
    """Where a workflow runs.

    Args:
        default: the value of ``--on`` by verb; None if it follows from the run.
        refused: target → the sentence that says what to use instead.
        flags: flags of the tool whose commands the workflow knows → the target that each chooses.
    """

    __slots__ = ("default", "flags", "refused")

    def __init__(
        self,
        default: Mapping[str, str | None],
        refused: Mapping[str, str] | None = None,
        flags: Mapping[tuple[str, ...], str] | None = None,
    ) -> None:
        self.default, self.refused, self.flags = default, refused or {}, flags or {}

    @property
    def offered(self) -> list[str]:
        return [target for target in TARGETS if target not in self.refused]


def complete(noun: str, verbs: Sequence[Command], targets: Targets) -> tuple[Command, ...]:
    """Returns the verbs of a workflow in the shared order, with the shared aliases and ``--on``; its own verbs follow.

    Raises ValueError if the workflow lacks a verb.
    """
    own = {verb.name: verb for verb in verbs}
    missing = [name for name in PURPOSES if name not in own]
    if missing:
        raise ValueError(f"`det {noun}` lacks {', '.join(missing)}; every workflow has the verbs {', '.join(PURPOSES)}")
    for name in PURPOSES:
        verb = own[name]
        verb.aliases = tuple(dict.fromkeys((*ALIASES.get(name, ()), *verb.aliases)))
        if "--on" in FLAGS.get(name, ()):
            verb.arguments = (*verb.arguments, _on(noun, name, targets))
    return (*(own.pop(name) for name in PURPOSES), *own.values())


class _Default(str):
    """A default that argparse tells apart from the same word of the command line: it compares by identity, and would
    accept the default together with an exclusive flag."""

    __slots__ = ()


def _on(noun: str, verb: str, targets: Targets) -> Callable[[ArgumentParser], None]:
    def target(word: str) -> str:
        from argparse import ArgumentTypeError

        if word in targets.refused:
            raise ArgumentTypeError(targets.refused[word])
        if word not in TARGETS:
            raise ArgumentTypeError(f'`det {noun}` has no target "{word}"; valid: {", ".join(targets.offered)}')
        return word

    def add(parser: ArgumentParser) -> None:
        default = targets.default[verb]
        places = [f"{name} ({TARGETS[name]})" for name in targets.offered]
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            "--on",
            type=target,
            default=None if default is None else _Default(default),
            metavar="TARGET",
            help=f"{', '.join(places[:-1])} or {places[-1]}; default: {default or 'where it ran before'}",
        )
        for names, place in targets.flags.items():
            group.add_argument(*names, action="store_const", const=place, dest="on", help=f"same as --on {place}")

    return add
