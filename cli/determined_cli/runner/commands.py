"""Commands of ``det runner``."""

from argparse import Namespace

from determined_cli.main import say
from determined_workflows.runner.errors import RunnerError
from determined_workflows.runner.program import VERBS


def act(args: Namespace) -> int:
    """Runs a verb of the grid runner. Its errors have exit codes of their own."""
    try:
        return VERBS[args.verb].act(args)
    except RunnerError as error:
        say(f"det: {error}")
        return error.exit_code
