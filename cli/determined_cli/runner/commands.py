"""Commands of ``det runner``."""

from argparse import Namespace
from pathlib import Path

from determined.errors import ConfigError
from determined_cli.main import say
from determined_workflows.runner import output_folder
from determined_workflows.runner.cluster import record as records
from determined_workflows.runner.errors import RunnerError
from determined_workflows.runner.program import VERBS, options


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
        if not args.cluster and (args.config or args.detach):
            raise ConfigError("--config and --detach have an effect only with --cluster")
        return bool(args.cluster)
    if args.verb not in ("attach", "status", "stop"):
        return False
    record = records.read(Path(args.output))
    if record is None or record.is_over:
        return False
    # The lines of a process that follows the experiment already are printed as those of a run on this machine.
    return args.verb != "attach" or output_folder.runner(Path(args.output)) is None


def _act_on_cluster(args: Namespace) -> int:
    # A grid on this machine starts without the HTTP client.
    from determined_cli import connection
    from determined_workflows.runner.cluster import run as grid_on_cluster

    session = connection.connect(args.options)
    if args.verb == "attach":
        return grid_on_cluster.attach(session, Path(args.output))
    if args.verb == "status":
        grid_on_cluster.status(session, Path(args.output))
        return 0
    if args.verb == "stop":
        grid_on_cluster.stop(session, Path(args.output), is_killing=args.now)
        return 0
    args.is_retry = args.verb == "retry"
    return grid_on_cluster.run(session, options(args), args.config, is_detached=args.detach)
