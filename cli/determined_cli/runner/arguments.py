"""Command table of ``det runner``: the verbs of the grid runner, which has a program of its own too."""

from argparse import ArgumentParser

from determined_cli.command import Command, argument
from determined_workflows.runner.program import VERBS as RUNNER_VERBS
from determined_workflows.runner.program import Verb

BARE = ()

_CLUSTER = (
    argument("--cluster", action="store_true", help="run the grid as an experiment, with one trial for each task"),
    argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --cluster, a setting of the experiment: resources.resource_pool=gpus",
    ),
    argument("--detach", action="store_true", help="with --cluster, do not wait: `det runner attach` fetches outputs"),
)


def _command(name: str, verb: Verb) -> Command:
    def remember(parser: ArgumentParser) -> None:
        parser.set_defaults(verb=name)

    run = "determined_cli.runner.commands:act"
    more = _CLUSTER if name in ("run", "retry") else ()
    return Command(name, verb.help, run, (verb.add_flags, *more, remember), examples=verb.examples)


VERBS = tuple(_command(name, verb) for name, verb in RUNNER_VERBS.items())
