"""Commands of ``det runner``."""

from argparse import Namespace
from pathlib import Path

from determined.errors import ConfigError
from determined_cli.terminal.messages import say
from determined_workflows.runner import output_folder
from determined_workflows.runner.cluster import record as records
from determined_workflows.runner.errors import RunnerError
from determined_workflows.runner.program import VERBS, options

_OF_OUTPUT = ("status", "logs", "stop")
"""Verbs for a grid that has been started: its output says where."""


def act(args: Namespace) -> int:
    """Runs a verb of the grid runner, here or on the cluster. Its errors have exit codes of their own."""
    try:
        if _is_of_cluster(args):
            return _act_on_cluster(args)
        return VERBS[args.verb].act(args)
    except RunnerError as error:
        say(f"det: {error}")
        return error.exit_code


def _is_of_cluster(args: Namespace) -> bool:
    """Returns True if the grid is to run on the cluster, or runs there and is followed or stopped."""
    if args.verb in ("run", "retry"):
        if args.on != "det" and (args.config or args.detach):
            raise ConfigError("--config and --detach have an effect only with --on det")
        return bool(args.on == "det")
    if args.verb not in _OF_OUTPUT:
        return False
    record = records.read(Path(args.output))
    if record is None or record.is_over:
        return False
    if args.verb == "logs" and args.task is None:
        # Without -f the lines that were kept are enough. The lines of a process that follows the experiment already are
        # printed as those of a run on this machine.
        return bool(args.follow) and output_folder.runner(Path(args.output)) is None
    return True


def _act_on_cluster(args: Namespace) -> int:
    # A grid on this machine starts without the HTTP client.
    from determined_cli import connection
    from determined_workflows.runner.cluster import run as grid_on_cluster

    if args.verb in ("run", "retry"):
        args.is_retry = args.verb == "retry"
        session = connection.connect(args.options)
        return grid_on_cluster.run(session, options(args), args.config, is_detached=args.detach)
    output = Path(args.output)
    record = grid_on_cluster.of_output(output)
    args.options.master = args.options.master or record.master
    session = connection.connect(args.options)
    if args.verb == "logs" and args.task is None:
        return grid_on_cluster.attach(session, output)
    if args.verb == "logs":
        from determined_cli.logs import print_trial

        print_trial(session, grid_on_cluster.trial_of(session, record, args.task), is_following=args.follow)
    elif args.verb == "status":
        grid_on_cluster.status(session, output)
    else:
        grid_on_cluster.stop(session, output, is_killing=args.now)
    return 0
