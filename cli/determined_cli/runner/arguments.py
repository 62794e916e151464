"""Command table of ``det runner``: the verbs of the grid runner, which has a program of its own too."""

from argparse import ArgumentParser

from determined_cli.command import Command, argument
from determined_cli.workflow_verbs import Targets, complete
from determined_workflows.runner.program import ALIASES, Verb
from determined_workflows.runner.program import VERBS as RUNNER_VERBS

NOUNS_WITHOUT_VERBS = ()

_TARGETS = Targets(
    default={"run": "local", "retry": "local"},
    refused={
        "slurm": "a grid does not become jobs of Slurm; submit one job with `det batch run` whose command is "
        "`det runner run`, or use --on det"
    },
    flags={("--cluster",): "det"},
)
_ON_CLUSTER = (
    argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --on det, a setting of the experiment: resources.resource_pool=gpus",
    ),
    argument("--detach", action="store_true", help="with --on det, do not wait: `det runner logs -f` fetches outputs"),
)


def _command(name: str, verb: Verb) -> Command:
    def remember(parser: ArgumentParser) -> None:
        parser.set_defaults(verb=name)

    more = _ON_CLUSTER if name in ("run", "retry") else ()
    other_words = {alias: tuple(flags) for alias, (of, *flags) in ALIASES.items() if of == name}
    return Command(
        name,
        verb.help,
        "determined_cli.runner.commands:act",
        (verb.add_flags, *more, remember),
        aliases=tuple(other_words),
        examples=verb.examples,
        alias_words=other_words,
    )


VERBS = complete("runner", [_command(name, verb) for name, verb in RUNNER_VERBS.items()], _TARGETS)
