"""Places what waits, and now and then compares what the scheduler keeps in memory with the database."""

import time
from collections.abc import Callable

from determined_master.resource_managers.managers import ResourceManagers

CHECK_SECONDS = 600.0


class ScheduleLoop:
    def __init__(
        self,
        managers: ResourceManagers,
        *,
        is_draining: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``is_draining`` returns True while the cluster is about to stop: nothing is placed."""
        self._managers = managers
        self._is_draining = is_draining
        self._monotonic = monotonic
        self._checked_at = monotonic()

    async def tick(self) -> float | None:
        """Returns the seconds until it has to run again even if nothing changes."""
        if self._is_draining():
            return None
        return await self._managers.reconcile()

    async def check(self) -> None:
        """Is run beside the ticks, which do not wait for it. A state that was just read needs none."""
        now = self._monotonic()
        if now - self._checked_at >= CHECK_SECONDS:
            self._checked_at = now
            await self._managers.check()
