"""Runs a plan in a container, and where it is configured watches meanwhile whether the ranks still make steps."""

from collections.abc import Mapping

from determined_launch import environment, hang_watchdog, runner
from determined_launch.launcher import LaunchContext


def run(
    context: LaunchContext, plan: runner.Plan, *, environ: Mapping[str, str] | None = None, launch: str | None = None
) -> int:
    """The code of the runner. A layer inside a worker leaves the watch to the one around it."""
    mark = launch or runner.new_launch()
    watch = server = None
    if context.settings.hang_seconds and not context.environ.get(environment.WORKER_OF):
        if context.facts.is_chief:
            watch = hang_watchdog.HangWatch(context, mark)
        else:
            server = hang_watchdog.serve(context)
    try:
        own = context.environ if environ is None else environ
        return runner.run(plan, own, exits=context.exits, launch=mark, watch=watch)
    finally:
        if server is not None:
            server.close()
