"""Runs a plan in each container of an allocation."""

from collections.abc import Mapping

from determined_launch import runner
from determined_launch.layer import Situation


def run(
    situation: Situation, plan: runner.Plan, *, environ: Mapping[str, str] | None = None, launch: str | None = None
) -> int:
    """The code of the runner."""
    return runner.run(plan, situation.environ if environ is None else environ, exits=situation.exits, launch=launch)
