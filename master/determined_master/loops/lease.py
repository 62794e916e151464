"""Checks the lease of the database. Where another master has taken it, this one stops."""

import asyncio
import logging
import signal

from determined_master.db.lease import CHECK_SECONDS, RETRY_SECONDS, DatabaseAway, DatabaseTaken, Lease

logger = logging.getLogger(__name__)


class LeaseLoop:
    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    async def tick(self) -> float:
        """Returns the seconds until the next check."""
        try:
            await asyncio.to_thread(self._lease.check)
        except DatabaseTaken as error:
            logger.critical("this master stops: %s", error)
            signal.raise_signal(signal.SIGTERM)
        except DatabaseAway:
            return RETRY_SECONDS
        return CHECK_SECONDS
