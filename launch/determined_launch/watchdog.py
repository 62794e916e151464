"""Runs a plan in a container, and where it is configured watches meanwhile whether the ranks still make steps."""

from collections.abc import Mapping

from determined_launch import environment, hang, runner
from determined_launch.layer import Situation


def run(
    situation: Situation, plan: runner.Plan, *, environ: Mapping[str, str] | None = None, launch: str | None = None
) -> int:
    """The code of the runner. A layer inside a worker leaves the watch to the one around it."""
    mark = launch or runner.new_launch()
    watch = server = None
    if situation.settings.hang_seconds and not situation.environ.get(environment.WORKER_OF):
        if situation.facts.is_chief:
            watch = hang.HangWatch(situation, mark)
        else:
            server = hang.serve(situation)
    try:
        own = situation.environ if environ is None else environ
        return runner.run(plan, own, exits=situation.exits, launch=mark, watch=watch)
    finally:
        if server is not None:
            server.close()
