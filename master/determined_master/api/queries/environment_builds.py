"""The builds of Python environments for which trials wait, as a sentence and the task to look at."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from determined.environments.inputs import name_of
from determined_master.allocations import environment_wait_repository
from determined_master.allocations.environment_wait_repository import AwaitedBuild
from determined_master.db.session import ReadSession
from determined_master.logs import log_queries
from determined_master.logs.repository import Selection

MAX_LINE_LENGTH = 120


class BuildStatus(NamedTuple):
    """``task_id``: the task that builds; None until there is one. ``text``: what is built where, and what the installer
    wrote last."""

    task_id: str | None
    text: str


async def builds_of(
    session: ReadSession, task_ids: Collection[str], config: Mapping[str, Any]
) -> dict[str, BuildStatus]:
    """Returns, by task, the builds for which the tasks wait. ``config``: the configuration that all of them share."""
    waits = await environment_wait_repository.building_for(session, task_ids)
    lines = {build_id: await _last_line(session, build_id) for build_id in {wait.build_id for wait in waits.values()}}
    return {
        task_id: BuildStatus(wait.build_id, sentence(wait, config, lines[wait.build_id]))
        for task_id, wait in waits.items()
    }


def sentence(wait: AwaitedBuild, config: Mapping[str, Any], line: str) -> str:
    """Returns what is built where, with the last line of the installer.

    >>> config = {"environment": {"venv": {"requirements": "requirements.txt"}}}
    >>> sentence(Building("0f1e2d3c4b5a6978", "gpu-1", "t1"), config, "Collecting torch==2.13.0")
    'requirements.txt on agent gpu-1: Collecting torch==2.13.0'
    """
    environment = config.get("environment") or {}
    place = f"{name_of(environment.get('venv') or {'pip': environment.get('pip') or []})} on agent {wait.agent_id}"
    return f"{place}: {line}" if line else place


async def _last_line(session: ReadSession, build_id: str | None) -> str:
    if build_id is None:
        return ""
    newest = await log_queries.texts(session, build_id, Selection(), after=None, before=None, most=1, newest_first=True)
    text = newest[0][1].strip() if newest else ""
    return text if len(text) <= MAX_LINE_LENGTH else f"{text[: MAX_LINE_LENGTH - 1]}…"
