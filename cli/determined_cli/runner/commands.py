"""Commands of ``det runner``."""

from argparse import Namespace
from pathlib import Path

from determined_cli.main import say
from determined_workflows.runner import example
from determined_workflows.runner import status as grid_status
from determined_workflows.runner.grid import Selection
from determined_workflows.runner.run import Options
from determined_workflows.runner.run import run as run_grid


def init(args: Namespace) -> None:
    """Writes the example."""
    example.init(Path(args.file))
    say(f"wrote {args.file}; `det runner run` executes it")


def run(args: Namespace) -> int:
    """Runs a grid."""
    return run_grid(
        Options(
            output=Path(args.output),
            yaml=Path(args.yaml),
            selection=Selection(args.title, args.command, args.sample),
            resources=args.resource,
            is_debug=args.debug,
            is_dry_run=args.dry_run,
            is_forced=args.force,
            is_verbose=args.verbose,
            is_exit_zero=args.exit_zero,
            has_subfolders=not args.no_subdir,
        )
    )


def status(args: Namespace) -> None:
    """Prints the states of the tasks."""
    grid_status.show(Path(args.output))
