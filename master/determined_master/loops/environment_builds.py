"""Starts a build for each Python environment that a container waits for, and ends builds that nobody waits for."""

import logging
from functools import partial

from determined.link.isolation import Isolation
from determined_master.services import Services
from determined_master.tasks import environment_build, environment_repository, repository
from determined_master.tasks.environment_repository import Build, Need

logger = logging.getLogger(__name__)


class EnvironmentBuilds:
    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._tasks = services.tasks
        self._items = Isolation("environment builds", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            needs = await environment_repository.needed(session)
            builds = await environment_repository.builds(session)
        running = {(build.agent_id, build.key) for build in builds}
        for place, need in needs.items():
            if place not in running and self._items.is_due("environment", place):
                await self._items.run("environment", place, partial(self._start, need))
        for build in builds:
            # One that is placed is let alone: its containers stop waiting a moment before it has ended.
            if (build.agent_id, build.key) not in needs and not build.is_placed:
                await self._items.run("build", build.task_id, partial(self._end, build))
        return self._items.seconds_left()

    async def _start(self, need: Need) -> None:
        async with self._database.write() as session:
            await environment_build.start(session, self._tasks, need)

    async def _end(self, build: Build) -> None:
        async with self._database.write() as session:
            await self._tasks.kill(session, await repository.get(session, build.task_id), "system")
