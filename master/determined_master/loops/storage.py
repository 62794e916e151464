"""Checks the master's storages every few seconds: free space, and a small write where one has failed."""

from determined_master import notifications
from determined_master.data_folder.storage_health import StorageHealth
from determined_master.notifications import Notifications

TICK_SECONDS = 5.0


class StorageLoop:
    """Changes of a status are logged, and published to the pages that show it."""

    def __init__(self, health: StorageHealth, topics: Notifications) -> None:
        self._health = health
        self._topics = topics

    async def tick(self) -> float:
        """Returns the seconds until the next check."""
        if self._health.needs_probe:
            await self._health.probe()
        if await self._health.measure():
            self._health.log_states()
            self._topics.publish({notifications.CLUSTER})
        return TICK_SECONDS
