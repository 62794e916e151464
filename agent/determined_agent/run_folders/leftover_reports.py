"""Sends the metric reports that a task left on disk when it ended.

This happens before the agent reports the end to the master: afterwards the task's token is void, and the next attempt
reports the later steps. The task wrote everything in the spool, so it is bounded and sent with the task's own token.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping

from determined.client.certificates import Trust
from determined.link.run_folder import RunFolder
from determined_agent.master_link.http import HttpClient, HttpError
from determined_launch import environment as names
from determined_launch.regular_files import read_regular, write_regular

logger = logging.getLogger(__name__)

MAX_BYTES = 64 << 20
_FIRST_WAIT, _LAST_WAIT = 0.1, 2.0
_OVER = (401, 403, 404, 409)
"""HTTP statuses that mean that this attempt may no longer report."""
MAX_FAILURES = 10
"""Number of retries of a report after errors of the master."""


async def send_leftover_reports(
    folder: RunFolder, environment: Mapping[str, str], master: str, trust: Trust = Trust()
) -> int:
    """Sends the reports in order; waits until the master answers. Returns how many the master has accepted."""
    trial_id, token = environment.get(names.TRIAL_ID, ""), environment.get(names.SESSION_TOKEN, "")
    if not trial_id.isdecimal() or not token:
        return 0
    reports = await asyncio.to_thread(lambda: list(_unsent(folder)))
    if not reports:
        return 0
    logger.info("sending %d unsent metric reports of container %s", len(reports), folder.path.name)
    path = f"/api/v1/trials/{trial_id}/metrics"
    count = 0
    async with contextlib.aclosing(HttpClient(master, token, trust=trust)) as client:
        for report, end in reports:
            status = await _send(client, path, report)
            if status in _OVER:
                logger.warning(
                    "the master rejected the metric reports of container %s with status %d; they are dropped",
                    folder.path.name,
                    status,
                )
                return count
            count += status == 200
            with contextlib.suppress(OSError):  # a report that is sent twice counts once
                write_regular(folder.spool, folder.reports_sent.name, b"%020d" % end, owner=folder.owner)
    return count


async def _send(client: HttpClient, path: str, report: bytes) -> int:
    """Returns the status of the answer. Waits while the master does not answer or its disk is full."""
    wait, failures = _FIRST_WAIT, 0
    while True:
        try:
            status = (await client.request("POST", path, report)).status
        except HttpError:
            status = 503
        failures += status == 500
        if status < 500 or failures > MAX_FAILURES:
            return status
        await asyncio.sleep(wait)
        wait = min(wait * 2, _LAST_WAIT)


def _unsent(folder: RunFolder) -> Iterator[tuple[bytes, int]]:
    """Yields each unsent report with the offset after it. Blocking."""
    try:
        data = read_regular(folder.reports, MAX_BYTES, owner=folder.owner)
    except FileNotFoundError:
        return
    except OSError as error:
        logger.warning("cannot read the unsent metric reports of container %s: %s", folder.path.name, error)
        return
    try:
        sent = read_regular(folder.reports_sent, 64, owner=folder.owner)[:20]
    except OSError:
        sent = b""
    at = int(sent) if sent.isdigit() and int(sent) <= len(data) else 0
    for line in data[at:].splitlines(keepends=True):
        at += len(line)
        if line.endswith(b"\n"):  # a process that was killed while writing leaves a partial line
            yield line, at
