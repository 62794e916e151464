"""Launches tasks by a driver of an agent, and finds their output and processes."""

import asyncio
import uuid
from pathlib import Path

from tests.support.container_engine import BASE_IMAGE

from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import ContainerLaunch, ContainerOptions, Driver, RunEnd
from determined_agent.output import log_segments
from determined_agent.task_process import processes
from determined_agent.task_process.namespaces import Mount


def make_launch(
    folder: Path, script: str, *, argv: tuple[str, ...] = (), mounts: tuple[Mount, ...] = ()
) -> ContainerLaunch:
    run = RunFolder(folder / uuid.uuid4().hex)
    run.make()
    environment = {"PATH": "/usr/bin:/bin", "DET_ALLOCATION_ID": run.path.name}
    options = ContainerOptions(BASE_IMAGE, network_mode="none")
    return ContainerLaunch(run, argv or ("bash", "-c", script), environment, run.workdir, mounts, options)


def text_of(folder: RunFolder) -> list[str]:
    lines: list[str] = []
    position = 0
    while (chunk := log_segments.read(folder.output, position)).end != position:
        lines += [frame.line.decode() for frame in chunk.frames]
        position = chunk.end
    return lines


def left_of(launch: ContainerLaunch) -> set[int]:
    return processes.marked("DET_ALLOCATION_ID", launch.folder.path.name)


async def run(driver: Driver, launch: ContainerLaunch) -> RunEnd:
    await driver.start(launch)
    async with asyncio.timeout(20):
        return await driver.wait(launch.folder)


def read_or_nothing(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def shim_of(launch: ContainerLaunch) -> int:
    """Returns the shim's pid on the host, which differs from its pid inside a container."""
    order = str(launch.folder.order).encode()
    lines = {int(path.parent.name): read_or_nothing(path) for path in Path("/proc").glob("[0-9]*/cmdline")}
    # The first process of a container has the shim's arguments too. Processes that the shim forked have larger pids.
    return min(pid for pid, line in lines.items() if order in line and b"docker-init" not in line)
