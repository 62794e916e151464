"""Runs a plan in a container and, if configured, watches for hangs of the ranks."""

from collections.abc import Mapping, Sequence

from determined_launch import environment, hang_watchdog, runner
from determined_launch.launcher import LaunchContext


def run(
    context: LaunchContext,
    plan: runner.LauncherPlan,
    *,
    environ: Mapping[str, str] | None = None,
    launch: str | None = None,
    watch: runner.Watch | None = None,
    ranks: Sequence[int] | None = None,
) -> int:
    """Returns the runner's exit code. A layer inside a worker leaves the watch to the outer layer.

    ``ranks``: of the containers that start workers, by default all; the first of them watches for hangs.
    ``watch``: one of the layer's own, beside that for hangs. Such a layer serves the other containers itself.
    """
    mark = launch or runner.new_launch()
    hangs = server = None
    if context.settings.hang_seconds and not context.environ.get(environment.WORKER_OF):
        with_workers = range(context.facts.nodes) if ranks is None else ranks
        if context.facts.rank == with_workers[0]:
            hangs = hang_watchdog.HangWatch(context, mark, with_workers[1:])
        elif watch is None:
            server = hang_watchdog.serve(context)
    try:
        own = context.environ if environ is None else environ
        return runner.run(plan, own, exits=context.exits, launch=mark, watch=_both(hangs, watch))
    finally:
        if server is not None:
            server.close()


def _both(*watches: runner.Watch | None) -> runner.Watch | None:
    """Returns a watch that ends everything as soon as one of ``watches`` does."""
    given = [watch for watch in watches if watch is not None]
    return (lambda: next((code for watch in given if (code := watch()) is not None), None)) if given else None
