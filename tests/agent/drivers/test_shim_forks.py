"""Shims that a fork server starts: the end of the server, its restart, and programs that run without another Python."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import live_processes
from tests.support.driver_runs import make_launch, run, text_of
from tests.support.waiting import eventually

from determined_agent.drivers import process
from determined_agent.drivers.driver import ContainerLaunch, RunEnd
from determined_agent.drivers.process import ProcessDriver
from determined_agent.drivers.shim_forks import ShimForks
from determined_agent.task_process.task_spawn import RUN_TASK


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[ShimForks]:
    forks = ShimForks(tmp_path / "data")
    forks.open()
    yield forks
    forks.close()


def server_of(folder: Path) -> list[int]:
    """Returns the pids of the fork servers of an agent with this data folder."""
    return [
        pid
        for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
        if (words := live_processes.command_of(pid))
        and any(word.endswith("fork_server.py") for word in words)
        and any(word.startswith(str(folder)) for word in words)
    ]


def boot(folder: Path, entrypoint: object, **variables: str) -> ContainerLaunch:
    """Returns the launch of a task by the product's own start-up program. Its argv would fail immediately."""
    launch = make_launch(folder, "", argv=("/nowhere/python", "-c", "raise SystemExit(9)"))
    environment = {**launch.environment, "DET_ENTRYPOINT_JSON": json.dumps(entrypoint), **variables}
    return ContainerLaunch(launch.folder, launch.argv, environment, launch.workdir, program=RUN_TASK)


async def test_the_start_up_program_runs_without_another_python(forks: ShimForks, tmp_path: Path) -> None:
    script = "echo $OWN; env | grep -c ^PATH=; pwd; tr '\\0' ' ' < /proc/$$/cmdline"
    launch = boot(tmp_path, script, OWN="variable")
    assert await run(ProcessDriver(forks=forks), launch) == RunEnd("exited", code=0)
    assert text_of(launch.folder) == ["variable", "1", str(launch.workdir), f"sh -c {script} "]


async def test_an_error_of_the_start_up_program_is_written_to_the_log(forks: ShimForks, tmp_path: Path) -> None:
    launch = boot(tmp_path, None)
    assert await run(ProcessDriver(forks=forks), launch) == RunEnd("exited", code=1)
    assert text_of(launch.folder) == ["determined: the experiment configuration has no entrypoint"]
    broken = boot(tmp_path, "true", DET_EXPERIMENT_CONFIG="{")
    assert await run(ProcessDriver(forks=forks), broken) == RunEnd("exited", code=1)
    assert text_of(broken.folder)[0] == "Traceback (most recent call last):"


async def test_a_forked_program_ignores_the_same_signals_as_one_that_python_started(
    forks: ShimForks, tmp_path: Path
) -> None:
    script = "grep SigIgn /proc/self/status"
    launch = boot(tmp_path, script)
    await run(ProcessDriver(forks=forks), launch)
    own = f"import os; os.execvp('sh', ['sh', '-c', '{script}'])"
    plain = make_launch(tmp_path, "", argv=(sys.executable, "-c", own))
    await run(ProcessDriver(), plain)
    assert text_of(launch.folder) == text_of(plain.folder)


async def test_a_forked_shim_has_the_command_line_of_a_shim(forks: ShimForks, tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "sleep 1000")
    driver = ProcessDriver(forks=forks)
    await driver.start(launch)
    (shim,) = live_processes.shims(launch.folder.path)
    words = [word for word in live_processes.command_of(shim) if word]
    assert words == [sys.executable, "-I", "-S", words[3], str(launch.folder.order)]
    assert words[3].endswith("determined_agent/task_process/shim.py")
    driver.stop(launch.folder)
    assert (await driver.wait(launch.folder)).kind == "stopped"


async def test_a_killed_fork_server_is_restarted_and_no_task_is_lost(
    forks: ShimForks, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    driver = ProcessDriver(forks=forks)
    (server,) = await eventually(lambda: server_of(tmp_path / "data"))
    running = make_launch(tmp_path, "read line < go; exit 3")
    os.mkfifo(running.workdir / "go")
    await driver.start(running)
    os.kill(server, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, server, os.WEXITED | os.WNOWAIT)
    with caplog.at_level(logging.WARNING):
        launch = make_launch(tmp_path, "echo done")
        assert await run(driver, launch) == RunEnd("exited", code=0)
    assert [record.message for record in caplog.records] == [
        "the fork server of this agent was ended by another program; it is started again"
    ]
    (second_server,) = await eventually(lambda: server_of(tmp_path / "data"))
    assert second_server != server
    (running.workdir / "go").write_text("now\n")
    async with asyncio.timeout(20):
        assert await driver.wait(running.folder) == RunEnd("exited", code=3)


async def test_the_fork_server_ends_with_its_agent_and_its_shims_continue(tmp_path: Path) -> None:
    forks = ShimForks(tmp_path / "data")
    forks.open()
    launch = make_launch(tmp_path, "read line < go; exit 3")
    os.mkfifo(launch.workdir / "go")
    await ProcessDriver(forks=forks).start(launch)
    assert server_of(tmp_path / "data")
    forks.close()
    await eventually(lambda: not server_of(tmp_path / "data"))
    (launch.workdir / "go").write_text("now\n")
    async with asyncio.timeout(20):
        assert await ProcessDriver().wait(launch.folder) == RunEnd("exited", code=3)


async def test_without_a_fork_server_a_shim_starts_in_its_own_python(tmp_path: Path) -> None:
    assert (await run(ProcessDriver(forks=ShimForks(tmp_path)), make_launch(tmp_path, "exit 4"))).code == 4


async def test_a_suspended_fork_server_is_replaced_and_delays_no_task(
    forks: ShimForks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "FORK_SECONDS", 0.2)
    driver = ProcessDriver(forks=forks)
    (server,) = await eventually(lambda: server_of(tmp_path / "data"))
    os.kill(server, signal.SIGSTOP)
    async with asyncio.timeout(60):
        assert await run(driver, make_launch(tmp_path, "echo done")) == RunEnd("exited", code=0)
    (second_server,) = await eventually(lambda: [pid for pid in server_of(tmp_path / "data") if pid != server])
    assert second_server != server


async def test_a_server_that_cannot_be_started_again_is_started_by_a_later_task(
    forks: ShimForks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_given: object, **_options: object) -> int:
        raise BlockingIOError("no process can be made")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_spawn", failing)
        forks.restart()
    for _ in range(2):  # the first start only starts the server
        assert await run(ProcessDriver(forks=forks), make_launch(tmp_path, "true")) == RunEnd("exited", code=0)
    assert len(server_of(tmp_path)) == 1


async def test_a_server_that_was_killed_leaves_no_zombie(forks: ShimForks, tmp_path: Path) -> None:
    (pid,) = await eventually(lambda: server_of(tmp_path))
    forks.restart()

    async def is_gone() -> bool:
        await run(ProcessDriver(forks=forks), make_launch(tmp_path, "true"))
        return not Path("/proc", str(pid)).exists()

    await eventually(is_gone)
