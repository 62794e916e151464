"""A loop: wakes on a notification or after an interval, ticks, and backs off after errors."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from determined_master.errors import StorageUnavailable
from determined_master.notifications import Notifications

logger = logging.getLogger(__name__)

TICK = "tick of"
"""The names of the tasks that are ticks begin with it."""
GRACE_SECONDS = 2.0
"""Time for the tick that runs when the master stops."""


async def run(
    name: str,
    notifications: Notifications,
    topics: tuple[str, ...],
    tick: Callable[[], Coroutine[Any, Any, float | None]],
    *,
    interval: float = 30.0,
    pause: float = 0.0,
    has_work: Callable[[], bool] = lambda: True,
) -> None:
    """Runs ``tick``, which may return the seconds until its next call; a lost notification costs at most ``interval``.
    ``pause``: minimum seconds between calls. It ends once ``has_work`` returns False. A tick isolates its items
    (determined.link.isolation); an error that it raises concerns all of them. Cancelled, it lets a running tick end,
    for GRACE_SECONDS at most."""
    failures, is_full = 0, False
    async with notifications.subscribe(*topics) as listener:
        while not notifications.closing and has_work():
            wait = interval
            try:
                wanted = await _ended(asyncio.create_task(tick(), name=f"{TICK} {name}"))
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


async def _ended(ticking: asyncio.Task[float | None]) -> float | None:
    """Returns the answer of a tick. One that is cut off in the middle rolls back, and leaves a connection behind if it
    was just being opened."""
    try:
        return await asyncio.shield(ticking)
    except asyncio.CancelledError:
        await asyncio.wait({ticking}, timeout=GRACE_SECONDS)
        ticking.cancel()
        raise


def _log(name: str, failures: int, error: Exception, wait: float) -> None:
    """Logs the traceback of the first of consecutive failures, then a line each time their number has doubled."""
    if failures == 1:
        logger.error("loop %s failed; trying again in %.1f s", name, wait, exc_info=error)
    elif failures & (failures - 1) == 0:
        logger.error("loop %s failed %d times in a row: %s", name, failures, error)
