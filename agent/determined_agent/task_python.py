"""Which Python a task runs under, and which library that Python holds already."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from determined_agent.drivers.driver import NotStarted

OLDEST = (3, 10)
_PATIENCE = 60.0

_QUESTION = """
import json, sys
from importlib import metadata
try:
    official = metadata.version("determined")
except metadata.PackageNotFoundError:
    official = None
print(json.dumps({"official": official, "version": sys.version_info[:2], "path": sys.path}))
"""


@dataclass(frozen=True)
class PythonFacts:
    """What a Python said of itself. ``official``: version of an installed distribution named ``determined``."""

    official: str | None
    version: tuple[int, int]


def choose(image: str | None, task_python: Path | None, own: Path) -> tuple[Path, str | None]:
    """The task's Python, and the image name that is ignored, if one is. Raises NotStarted for a bad ``venv:``."""
    if image and image.startswith("venv:"):
        folder = Path(image.removeprefix("venv:")).expanduser()
        python = folder / "bin" / "python"
        if not folder.is_absolute():
            raise NotStarted(f"environment.image: {image}: the folder must be an absolute path")
        if not os.access(python, os.X_OK):
            raise NotStarted(f"environment.image: {image}: there is no Python at {python} on this machine")
        return python, None
    return task_python or own, image or None


def put_first(environment: dict[str, str], python: Path) -> None:
    """Makes ``python`` the one that ``python3`` means in this environment."""
    folder = python.parent
    environment["PATH"] = os.pathsep.join([str(folder), environment.get("PATH") or os.defpath])
    if (folder.parent / "pyvenv.cfg").exists():
        environment["VIRTUAL_ENV"] = str(folder.parent)
        environment.pop("PYTHONHOME", None)
    environment["DET_PYTHON_EXECUTABLE"] = environment["DET_TASK_PYTHON"] = str(python)


class PythonProbe:
    """Asks each Python once, and again only when it, or a folder that it imports from, has changed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._known: dict[Path, tuple[dict[str, int], PythonFacts]] = {}
        self._lock = asyncio.Lock()

    async def ask(self, python: Path) -> PythonFacts:
        """Raises NotStarted where this is no Python that can run a task."""
        async with self._lock:
            known = self._known.get(python)
            if known is None or known[0] != _times(known[0]):
                known = self._known[python] = await self._ask(python)
        return known[1]

    async def _ask(self, python: Path) -> tuple[dict[str, int], PythonFacts]:
        try:
            process = await asyncio.create_subprocess_exec(
                str(python),
                "-c",
                _QUESTION,
                cwd="/",
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise NotStarted(f"the task's Python {python} cannot be started: {error.strerror}") from error
        try:
            out, err = await asyncio.wait_for(process.communicate(), _PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise NotStarted(f"the task's Python {python} did not answer within {_PATIENCE:.0f} s") from None
        try:
            told = json.loads(out)
            facts = PythonFacts(told["official"], (told["version"][0], told["version"][1]))
        except (ValueError, KeyError, TypeError):
            text = err.decode(errors="replace").strip()[-500:]
            raise NotStarted(f"the task's Python {python} does not work: {text}") from None
        watched = [str(python), *(path for path in told["path"] if path)]
        return _times(dict.fromkeys(watched, 0)), facts


def _times(paths: Mapping[str, int]) -> dict[str, int]:
    times = {}
    for path in paths:
        try:
            times[path] = os.stat(path).st_mtime_ns
        except OSError:
            times[path] = 0
    return times
