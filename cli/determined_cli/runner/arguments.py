"""Command table of ``det runner``: the verbs of the grid runner, which has a program of its own too."""

from argparse import ArgumentParser, Namespace

from determined_cli.command import Command
from determined_cli.main import say
from determined_workflows.runner.errors import RunnerError
from determined_workflows.runner.program import VERBS as RUNNER_VERBS
from determined_workflows.runner.program import Verb

BARE = ()


def act(args: Namespace) -> int:
    """Runs a verb of the grid runner. Its errors have exit codes of their own."""
    try:
        return RUNNER_VERBS[args.verb].act(args)
    except RunnerError as error:
        say(f"det: {error}")
        return error.exit_code


def _command(name: str, verb: Verb) -> Command:
    def remember(parser: ArgumentParser) -> None:
        parser.set_defaults(verb=name)

    run = "determined_cli.runner.arguments:act"
    return Command(name, verb.help, run, (verb.add_flags, remember), examples=verb.examples)


VERBS = tuple(_command(name, verb) for name, verb in RUNNER_VERBS.items())
