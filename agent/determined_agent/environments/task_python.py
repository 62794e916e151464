"""Finds the Python that a container requests, and the facts that this Python reports about itself."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined_agent.drivers.driver import NotStarted
from determined_agent.task_process.identity import Identity

OLDEST = (3, 10)
PROBE_SECONDS = 60.0

_QUESTION = """
import json, os, site, sys, sysconfig
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
print(json.dumps({
    "official": version("determined"),
    "torch": version("torch"),
    "version": sys.version_info[:2],
    "prefix": sys.prefix,
    "interpreter": getattr(sys, "_base_executable", None) or sys.executable,
    "site_folders": [folder for folder in folders if os.path.isdir(folder)],
    "scripts": sysconfig.get_path("scripts"),
    "path": sys.path,
}))
"""


@dataclass(frozen=True)
class PythonFacts:
    """Facts that a Python reports.

    ``official``, ``torch``: versions of the installed distributions ``determined`` and ``torch``.
    """

    official: str | None
    torch: str | None
    version: tuple[int, int]
    prefix: Path
    interpreter: Path
    """Path of the program itself, below any virtual environment."""
    site_folders: tuple[Path, ...]
    scripts: Path


def choose(image: str | None, task_python: Path | None, own: Path) -> tuple[Path, str | None]:
    """Returns the Python for the task, and the image name that is ignored, if one is. Blocking.

    Raises NotStarted for a bad ``venv:``.
    """
    if image and image.startswith("venv:"):
        folder = Path(image.removeprefix("venv:")).expanduser()
        python = folder / "bin" / "python"
        if not folder.is_absolute():
            raise NotStarted(f"environment.image: {image}: the path must be absolute")
        if not os.access(python, os.X_OK):
            raise NotStarted(f"environment.image: {image}: no Python at {python} on this machine")
        return python, None
    return task_python or own, image or None


_Key = tuple[Path, Identity | None]


class PythonProbe:
    """Probes each Python once, and again only after it, or a folder that it imports from, has changed.

    Each Python has a probe of its own, so a Python that hangs delays only the containers that want it.
    """

    def __init__(self, environment: Mapping[str, str], *, seconds: float = PROBE_SECONDS) -> None:
        self._environment = dict(environment)
        self._seconds = seconds
        self._known: dict[_Key, tuple[dict[str, int], PythonFacts]] = {}
        self._running: dict[_Key, asyncio.Task[PythonFacts]] = {}

    async def ask(self, python: Path, identity: Identity | None = None) -> PythonFacts:
        """Returns the facts of a Python, which runs as ``identity``. Raises NotStarted if it cannot run a task."""
        key = (python, identity)
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(self._find_out(key))
            running.add_done_callback(lambda task: self._finish(key, task))
        # A container that is stopped while it waits must not end the probe for the others.
        return await asyncio.shield(running)

    def _finish(self, key: _Key, task: asyncio.Task[PythonFacts]) -> None:
        self._running.pop(key, None)
        if not task.cancelled():
            task.exception()  # every waiting container may have been stopped

    async def _find_out(self, key: _Key) -> PythonFacts:
        known = self._known.get(key)
        if known is None or known[0] != await asyncio.to_thread(_times, known[0]):
            known = self._known[key] = await self._ask(*key)
        return known[1]

    async def _ask(self, python: Path, identity: Identity | None) -> tuple[dict[str, int], PythonFacts]:
        try:
            process = await asyncio.create_subprocess_exec(
                str(python),
                "-c",
                _QUESTION,
                cwd="/",
                env=self._environment if identity is None else {"PATH": os.defpath, "HOME": identity.home or "/"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                **_user_options(identity),
            )
        except OSError as error:
            raise NotStarted(f"cannot start the task's Python {python}: {error.strerror}") from error
        try:
            out, err = await asyncio.wait_for(process.communicate(), self._seconds)
        except TimeoutError:
            raise NotStarted(f"the task's Python {python} did not answer within {self._seconds:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the Python may be a script that started other processes
                await process.wait()
        try:
            answer = json.loads(out)
            facts = _facts(answer)
        except (ValueError, KeyError, TypeError, IndexError):
            text = err.decode(errors="replace").strip()[-500:]
            raise NotStarted(f"the task's Python {python} does not work: {text}") from None
        watched = [str(python), *(path for path in answer["path"] if path)]
        return await asyncio.to_thread(_times, dict.fromkeys(watched, 0)), facts


def _user_options(identity: Identity | None) -> dict[str, Any]:
    if identity is None:
        return {}
    return {"user": identity.uid, "group": identity.gid, "extra_groups": identity.groups}


def folders_of(python: Path) -> list[Path]:
    """Returns the folders of a Python and of each Python that it is a link to. Blocking."""
    found = [python]
    while found[-1].is_symlink():
        found.append(Path(os.path.normpath(found[-1].parent / os.readlink(found[-1]))))
    return [each.parent.parent for each in (*found, python.resolve())]


def _facts(answer: Mapping[str, Any]) -> PythonFacts:
    return PythonFacts(
        official=answer["official"],
        torch=answer["torch"],
        version=(answer["version"][0], answer["version"][1]),
        prefix=Path(answer["prefix"]),
        interpreter=Path(answer["interpreter"]),
        site_folders=tuple(Path(folder) for folder in answer["site_folders"]),
        scripts=Path(answer["scripts"]),
    )


def _times(paths: Mapping[str, int]) -> dict[str, int]:
    times = {}
    for path in paths:
        try:
            times[path] = os.stat(path).st_mtime_ns
        except OSError:
            times[path] = 0
    return times
