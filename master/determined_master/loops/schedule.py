"""Lets every resource manager compare its pools with their queues."""

from collections.abc import Collection

from determined_master.resource_managers.manager import ResourceManager


class Schedule:
    def __init__(self, managers: Collection[ResourceManager]) -> None:
        self._managers = managers

    async def tick(self) -> float | None:
        """Returns the seconds until the first of them has to be called again."""
        waits = [wait for manager in self._managers if (wait := await manager.observe()) is not None]
        return min(waits, default=None)
