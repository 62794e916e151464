"""Removes run folders that belong to no known container, by age and total size.

Such a folder remains after an unreadable record or an interrupted removal. A folder is never removed while the agent
knows its container, or while the task or its shim lives.
"""

import asyncio
import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Set

from determined.link.run_folder import RunFolder
from determined.link.stale_files import UnusedEntry, stale
from determined_agent.run_folders.agent_state import GONE, AgentState
from determined_agent.run_folders.end_tasks import is_running
from determined_agent.run_folders.tree_removal import remove_tree
from determined_agent.settings import Settings

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 600.0
_OURS = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""Matches container ids, which are UUIDs. An agent does not make folders with other names."""


class RunFolderCleanup:
    def __init__(self, state: AgentState, container_ids: Callable[[], Set[str]], settings: Settings) -> None:
        self._state = state
        self._container_ids = container_ids
        self._settings = settings

    async def run(self) -> None:
        """Cleans up every few minutes until cancelled."""
        while True:
            try:
                await self.tick()
            except Exception:
                logger.exception("cannot remove stale run folders; trying again")
            await asyncio.sleep(INTERVAL_SECONDS)

    async def tick(self) -> None:
        """Removes the folders that are stale now."""
        found = await asyncio.to_thread(lambda: list(self._entries()))
        # The agent may have adopted the container in the meantime.
        unknown = [one for one in found if one.name.removeprefix(GONE) not in self._container_ids()]
        for entry in stale(
            unknown,
            time.time(),
            max_age=self._settings.stale_run_folder_seconds,
            max_bytes=self._settings.stale_run_folder_bytes,
        ):
            if await asyncio.to_thread(self._remove, entry.name):
                logger.info("removed the stale run folder %s (%d bytes)", entry.name, entry.size)

    def _entries(self) -> Iterator[UnusedEntry]:
        with os.scandir(self._state.runs) as entries:
            for entry in entries:
                if _OURS.fullmatch(entry.name.removeprefix(GONE)) and entry.is_dir(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        yield UnusedEntry(entry.name, entry.stat(follow_symlinks=False).st_mtime, _size(entry.path))

    def _remove(self, name: str) -> bool:
        """Removes a folder unless its task lives; does not follow links in it. Returns True if the folder is gone."""
        folder = RunFolder(self._state.runs / name)
        if not name.startswith(GONE):
            if is_running(folder):
                return False
            folder = RunFolder(self._state.discard(folder))
        return remove_tree(folder.path)


def _size(path: str) -> int:
    """Returns the bytes on disk below ``path``, without the targets of links."""
    total = 0
    folders = [path]  # not os.walk, which is recursive: a task decides how deep it is
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total
