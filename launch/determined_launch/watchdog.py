"""Runs a plan in a container and, if configured, watches for hangs of the ranks."""

from collections.abc import Mapping

from determined_launch import environment, hang_watchdog, runner
from determined_launch.launcher import LaunchContext


def run(
    context: LaunchContext, plan: runner.Plan, *, environ: Mapping[str, str] | None = None, launch: str | None = None
) -> int:
    """Returns the runner's exit code. A layer inside a worker leaves the watch to the outer layer."""
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
