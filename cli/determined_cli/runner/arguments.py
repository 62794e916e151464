"""Command table of ``det runner``: the verbs of the grid runner."""

from argparse import ArgumentParser

from determined_cli.command import Command
from determined_workflows.runner.program import VERBS as RUNNER_VERBS
from determined_workflows.runner.program import Verb

BARE = ()


def _command(name: str, verb: Verb) -> Command:
    def remember(parser: ArgumentParser) -> None:
        parser.set_defaults(verb=name)

    run = "determined_cli.runner.commands:act"
    return Command(name, verb.help, run, (verb.add_flags, remember), examples=verb.examples)


VERBS = tuple(_command(name, verb) for name, verb in RUNNER_VERBS.items())
