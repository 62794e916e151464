"""Starts a build for each Python environment that an attempt lacks, and ends builds that nobody waits for.

The attempt gives its slots back, and its task asks for slots again when the build has ended.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from determined.link.isolation import Isolation
from determined_master.allocations import environment_wait_repository as wait_rows
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.environment_wait_repository import EnvironmentWait, LackingAttempt
from determined_master.logs import repository as logs
from determined_master.tasks import environment_build, environment_repository, repository
from determined_master.wiring.services import Services

RELEASED = "its environment is being built"
logger = logging.getLogger(__name__)


class EnvironmentBuilds:
    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._database = services.database
        self._tasks = services.tasks
        self._allocations = services.allocations
        self._items = Isolation("environment builds", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            lacking = await wait_rows.lacking(session)
            waits = await wait_rows.waits(session)
            builds = await environment_repository.builds(session)
        for allocation_id, lacked in _by_allocation(lacking).items():
            await self._items.run("attempt", allocation_id, partial(self._release, lacked))
        for wait in waits:
            place = (wait.task_id, wait.agent_id, wait.key)
            if not wait.is_wanted:
                await self._items.run("wait", place, partial(self._drop, wait))
            elif wait.build_id is None and self._items.is_due("wait", place):
                await self._items.run("wait", place, partial(self._join, wait))
            elif not wait.is_over and (wait.build_state is None or wait.build_state.is_terminal):
                await self._items.run("wait", place, partial(self._end_wait, wait))
        wanted = {wait.build_id for wait in waits if wait.is_wanted and not wait.is_over}
        for build_id in builds.values():
            if build_id not in wanted:
                await self._items.run("build", build_id, partial(self._end_build, build_id))
        return self._items.seconds_left()

    async def _release(self, lacked: Sequence[LackingAttempt]) -> None:
        """Ends an attempt that only waits, so that others get its slots."""
        async with self._database.write() as session:
            row = await allocation_rows.get(session, lacked[0].allocation_id)
            if row.state.is_live and row.kill_requested_at is None and row.ready_at is None:
                await wait_rows.add(session, lacked)
                await self._allocations.kill(session, row, why=RELEASED)

    async def _join(self, wait: EnvironmentWait) -> None:
        """Lets the task wait for the build of the environment, which is started unless one is under way."""
        async with self._database.write() as session:
            build_id = (await environment_repository.builds(session)).get((wait.agent_id, wait.key))
            if build_id is None:
                build_id = (await environment_build.start(session, self._tasks, wait)).id
            await wait_rows.set_build(session, wait, build_id)
            text = f"the environment {wait.key} is built by task {build_id}; its log: det task logs {build_id}"
            await logs.say(session, wait.task_id, wait.allocation_id, text, self._clock.now(), "INFO")

    async def _end_wait(self, wait: EnvironmentWait) -> None:
        async with self._database.write() as session:
            await wait_rows.end(session, wait)

    async def _drop(self, wait: EnvironmentWait) -> None:
        async with self._database.write() as session:
            await wait_rows.drop(session, wait)

    async def _end_build(self, build_id: str) -> None:
        async with self._database.write() as session:
            if not await wait_rows.has_waiting(session, build_id):
                await self._tasks.kill(session, await repository.get(session, build_id), "system")


def _by_allocation(lacking: Sequence[LackingAttempt]) -> dict[str, list[LackingAttempt]]:
    found: dict[str, list[LackingAttempt]] = defaultdict(list)
    for each in lacking:
        found[each.allocation_id].append(each)
    return found
