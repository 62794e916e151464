"""A scripted driver that runs nothing, for tests of the layers above the drivers."""

import asyncio
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass

from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import ContainerLaunch, NotStarted, RunEnd
from determined_agent.output.log_segments import STDOUT, SegmentWriter
from determined_launch.atomic_file import write_atomic


@dataclass(frozen=True)
class Play:
    """Scripted behaviour of a container: prints lines, then ends with ``code``, or runs until it is stopped (None)."""

    lines: tuple[str, ...] = ()
    code: int | None = 0
    refuse: str = ""


class FakeDriver:
    """Stores its state in the run folders like a real driver, so that a second one can take over."""

    def __init__(self, script: Callable[[ContainerLaunch], Play]) -> None:
        self._script = script
        self.started: list[str] = []

    async def start(self, launch: ContainerLaunch) -> None:
        folder = launch.folder
        write_atomic(folder.order, "{}")
        play = self._script(launch)
        if play.refuse:
            raise NotStarted(play.refuse)
        self.started.append(folder.path.name)
        writer = SegmentWriter(folder.output)
        for line in play.lines:
            writer.add(STDOUT, line.encode())
        writer.close()
        if play.code is not None:
            _end(folder, {"code": play.code})

    async def wait(self, folder: RunFolder) -> RunEnd:
        while not folder.exit.exists():  # noqa: ASYNC110 - the end may be another driver's doing
            await asyncio.sleep(0.005)
        record = json.loads(folder.exit.read_text())
        return RunEnd("stopped" if "signal" in record else "exited", record.get("code"), record.get("signal"))

    def runtime_id(self, _folder: RunFolder, /) -> str:
        return ""

    def stop(self, folder: RunFolder) -> None:
        if folder.order.exists() and not folder.exit.exists():
            _end(folder, {"signal": int(signal.SIGKILL)})


def _end(folder: RunFolder, record: dict[str, int]) -> None:
    write_atomic(folder.exit, json.dumps(record))
