"""The Python environments that this agent keeps: who waits for one, who uses one, and which are removed.

``DATA/environments/KEY`` has the folder ``build``, which belongs to the user of the build, and ``users``, with an
empty file for each container that uses the environment.
"""

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Set
from pathlib import Path

from determined.environments import RESULT, VENV, Result, read_result
from determined.link.stale_files import UnusedEntry, stale
from determined_agent.drivers.driver import NotStarted
from determined_agent.environments.task_python import PythonFacts
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.run_folders.tree_removal import remove_tree
from determined_agent.settings import Settings

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 600.0
_KEY = re.compile(r"[0-9a-f]{16}")
_BUILD, _USERS, _USED = "build", "users", "used"
_KILLED = "the task that builds the environment was killed"
_REMOVED = "the environment was removed before the task could use it"
_DISTRIBUTION = re.compile(r"(determined|torch)-([^-]+)\.dist-info")


class Environments:
    """The environments of one agent. Only ``wait`` and ``run`` are coroutines; the rest blocks for milliseconds."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.data / "environments"
        self._max_age = settings.unused_environment_seconds
        self._max_bytes = settings.unused_environment_bytes
        self._lock = threading.Lock()
        """Held while an environment gets a user, and while it is removed."""
        self._waiting: dict[str, dict[str, tuple[ContainerPlan, asyncio.Future[Result]]]] = {}

    def build_folder(self, key: str) -> Path:
        """Returns the folder into which the environment is built."""
        return self._folder / key / _BUILD

    def make(self, key: str) -> Path:
        """Creates the folder of an environment for its build, and returns it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = self.build_folder(key)
        folder.mkdir(parents=True, exist_ok=True)
        known = read_result(folder)
        if known is not None and not known.is_complete:
            (folder / RESULT).unlink(missing_ok=True)
        return folder

    async def wait(self, key: str, plan: ContainerPlan, *, is_built: bool = False) -> Path:
        """Returns the environment once it is complete, and counts the container as its user until ``leave``.

        Until then the container is reported as one that needs it: the master ends the attempt, starts a build, and
        another attempt follows. It goes on here only if a build ends before.

        Parameters:
            key: name of the environment.
            plan: the container.
            is_built: True if a build for its task has ended on this agent.

        Raises:
            NotStarted: the build failed.
        """
        if not self._take(key, plan.container_id):
            if is_built:
                raise NotStarted(self._failure(key))
            future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(key, {})[plan.container_id] = (plan, future)
            plan.need_environment(key)
            try:
                result = await future
            finally:
                plan.need_environment("")
                self._waiting.get(key, {}).pop(plan.container_id, None)
            if not result.is_complete or not self._take(key, plan.container_id):
                raise NotStarted(result.failure or _REMOVED)
        return self.build_folder(key) / VENV

    def finish(self, key: str) -> None:
        """Ends the wait of all containers, after a build of the environment has ended."""
        result = read_result(self.build_folder(key)) or Result(False, _KILLED)
        for plan, future in list(self._waiting.pop(key, {}).values()):
            plan.need_environment("")
            if not future.done():
                future.set_result(result)

    def leave(self, container_id: str) -> None:
        """Counts the container as a user no more."""
        for key in self._keys():
            (self._folder / key / _USERS / container_id).unlink(missing_ok=True)

    async def run(self, known: Callable[[], Set[str]]) -> None:
        """Removes unused environments every few minutes until cancelled. ``known`` returns the ids of containers."""
        while True:
            try:
                await asyncio.to_thread(self.clean_up, known())
            except Exception:
                logger.exception("cannot remove unused environments; trying again")
            await asyncio.sleep(INTERVAL_SECONDS)

    def clean_up(self, known: Set[str]) -> None:
        """Removes the environments that no container of ``known`` uses and that are too old or too large now."""
        entries = []
        for key in self._keys():
            users = {path.name for path in (self._folder / key / _USERS).glob("*")}
            if not users & known and not self._waiting.get(key):
                result = read_result(self.build_folder(key))
                size = result.bytes if result is not None else 0
                entries.append(UnusedEntry(key, _used(self._folder / key), size))
        for entry in stale(entries, time.time(), max_age=self._max_age, max_bytes=self._max_bytes):
            folder = self._folder / entry.name
            trash = folder.with_name(f".{entry.name}")
            with self._lock:
                if {path.name for path in (folder / _USERS).glob("*")} & known or _used(folder) > entry.changed:
                    continue  # a container has begun to use it
                folder.rename(trash)
            remove_tree(trash)
            days = (time.time() - entry.changed) / 86400
            logger.info("removed the environment %s, unused for %.1f days", entry.name, days)

    def _take(self, key: str, container_id: str) -> bool:
        """Returns True if the environment is complete; the container is its user then."""
        with self._lock:
            result = read_result(self.build_folder(key))
            if result is None or not result.is_complete:
                return False
            users = self._folder / key / _USERS
            users.mkdir(exist_ok=True)
            (users / container_id).touch()
            (self._folder / key / _USED).touch()
        return True

    def _failure(self, key: str) -> str:
        """Returns why the newest build has left no environment."""
        result = read_result(self.build_folder(key))
        return _KILLED if result is None else result.failure or _REMOVED

    def _keys(self) -> Iterator[str]:
        if self._folder.is_dir():
            yield from (path.name for path in self._folder.iterdir() if _KEY.fullmatch(path.name))


def _used(folder: Path) -> float:
    """Returns when a container last began to use it, else when it was created, in seconds since the epoch."""
    used = folder / _USED
    return (used if used.exists() else folder).stat().st_mtime


def facts_of(venv: Path) -> PythonFacts:
    """Returns the facts of a built environment from its files: its Python may not be reachable for this process.

    Raises:
        NotStarted: the folder is no environment.
    """
    sites = sorted(venv.glob("lib/python3.*/site-packages"))
    python = venv / "bin" / "python"
    if not sites or not os.path.lexists(python):
        raise NotStarted(f"{venv} is not a Python environment")
    for folder in (sites[0], python.parent):
        if os.path.realpath(folder) != os.path.join(os.path.realpath(venv), folder.relative_to(venv)):
            raise NotStarted(f"{venv} is not a Python environment: {folder.relative_to(venv)} is a link")
    number = sites[0].parent.name.removeprefix("python").split(".")
    named = (_DISTRIBUTION.fullmatch(path.name) for path in sites[0].iterdir())
    versions = {match[1]: match[2] for match in named if match}
    return PythonFacts(
        official=versions.get("determined"),
        torch=versions.get("torch"),
        version=(int(number[0]), int(number[1])),
        prefix=venv,
        interpreter=Path(os.path.realpath(python)),
        site_folders=(sites[0],),
        scripts=venv / "bin",
    )
