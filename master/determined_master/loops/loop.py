"""A loop: wakes on a notification or after an interval, ticks, and backs off after errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from determined_master.errors import StorageUnavailable
from determined_master.notifications import Notifications

logger = logging.getLogger(__name__)


async def run(
    name: str,
    notifications: Notifications,
    topics: tuple[str, ...],
    tick: Callable[[], Awaitable[float | None]],
    *,
    interval: float = 30.0,
    pause: float = 0.0,
) -> None:
    """Runs ``tick``, which may return the seconds until its next call; a lost notification costs at most ``interval``.
    ``pause``: minimum seconds between calls. A tick isolates its items (determined.link.isolation); an error that it
    raises concerns all of them."""
    failures, is_full = 0, False
    async with notifications.subscribe(*topics) as listener:
        while not notifications.closing:
            wait = interval
            try:
                wanted = await tick()
                failures, is_full = 0, False
                if wanted is not None:
                    wait = min(interval, max(0.0, wanted))
            except asyncio.CancelledError:
                raise
            except StorageUnavailable as error:
                if not is_full:
                    logger.error("loop %s waits: %s", name, error)
                is_full = True
                await asyncio.sleep(error.RETRY_SECONDS)
                continue
            except Exception as error:
                failures += 1
                wait = min(30.0, 0.1 * 2 ** min(failures, 9))
                _log(name, failures, error, wait)
                await asyncio.sleep(wait)
                continue
            await asyncio.sleep(pause)
            await listener.wait(max(0.0, wait - pause))


def _log(name: str, failures: int, error: Exception, wait: float) -> None:
    """Logs the traceback of the first of consecutive failures, then a line each time their number has doubled."""
    if failures == 1:
        logger.error("loop %s failed; trying again in %.1f s", name, wait, exc_info=error)
    elif failures & (failures - 1) == 0:
        logger.error("loop %s failed %d times in a row: %s", name, failures, error)
