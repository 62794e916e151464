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
    """``tick`` may name the seconds after which it wants to be called again; a lost hint costs ``interval`` at most.
    ``pause``: seconds in which it is not called again, whatever hints come.

    A tick isolates its items (determined.link.isolation); what it raises itself concerns all of them."""
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
    """The traceback at the first failure in a row; then a line each time that their number has doubled."""
    if failures == 1:
        logger.error("loop %s failed; again in %.1f s", name, wait, exc_info=error)
    elif failures & (failures - 1) == 0:
        logger.error("loop %s failed %d times in a row: %s", name, failures, error)
