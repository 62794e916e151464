"""The agent as a process: kill -9, SIGTERM, refusals, and the real start of a container."""

import asyncio
import functools
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.agents import make_desired
from tests.support.fake_link_master import TOKEN, FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined.errors import DeterminedError
from determined.link.messages import ContainerExit, DesiredContainer, Refuse
from determined_agent.__main__ import check_user
from determined_agent.settings import Settings
from determined_agent.task_process import processes

pytestmark = pytest.mark.budget(15, "kills and starts an agent again and again")


async def start(url: str, data: Path, *flags: str, environment: dict[str, str] | None = None) -> Process:
    data.mkdir(exist_ok=True)
    (data / "token").write_text(TOKEN + "\n")
    argv = ["--master", url, "--data", str(data), "--token-file", str(data / "token"), "--slots", "1", *flags]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "determined_agent", *argv, env={**os.environ, **(environment or {})}, stderr=PIPE
    )


@asynccontextmanager
async def agent(url: str, data: Path, *flags: str, environment: dict[str, str] | None = None) -> AsyncIterator[Process]:
    process = await start(url, data, "--tasks-as-me", *flags, environment=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


def state_is(master: FakeLinkMaster, desired: DesiredContainer, state: str) -> Callable[[], bool]:
    return lambda: (report := master.report_of(desired.container_id)) is not None and report.state == state


def has_more(master: FakeLinkMaster, count: int) -> bool:
    return len(master.reports) >= count


async def ended(master: FakeLinkMaster, desired: DesiredContainer) -> ContainerExit:
    await eventually(lambda: (t := master.report_of(desired.container_id)) is not None and t.output_done)
    report = master.report_of(desired.container_id)
    assert report is not None
    assert report.exit is not None
    return report.exit


def make_long(url: str, go: Path, script: str = "") -> DesiredContainer:
    """Returns a desired container that counts until the file ``go`` exists."""
    loop = f"i=0; while [ ! -e {go} ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo end; {script}"
    return make_desired(loop, environment={"DET_MASTER": url, "DET_RESOURCES_ID": "r", "DET_SESSION_TOKEN": "t"})


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_tasks_outlive_their_agent_and_the_next_agent_adopts_them(tmp_path: Path, number: signal.Signals) -> None:
    master, go = FakeLinkMaster(), tmp_path / "go"
    async with serving(master.app()) as url:
        desired = make_long(url, go, "exit 3")
        async with agent(url, tmp_path / "data") as first:
            await master.set_desired(desired)
            await eventually(lambda: len(master.text_of(desired.container_id)) > 5)
            first.send_signal(number)
            await first.wait()
            assert first.returncode == (0 if number == signal.SIGTERM else -number)
        before = len(master.text_of(desired.container_id))
        assert processes.marked("DET_CONTAINER_ID", desired.container_id)
        async with agent(url, tmp_path / "data"):
            await eventually(lambda: len(master.text_of(desired.container_id)) > before + 5)
            go.touch()
            assert (await ended(master, desired)).code == 3
    lines = master.text_of(desired.container_id)
    assert lines == [*(str(number) for number in range(1, len(lines))), "end"]
    assert processes.marked("DET_CONTAINER_ID", desired.container_id) == set()


async def test_killing_the_agent_at_any_moment_starts_no_container_twice_and_loses_none(tmp_path: Path) -> None:
    master, log = FakeLinkMaster(), tmp_path / "log"
    async with serving(master.app()) as url:
        for _ in range(6):
            desired = make_desired(
                f"echo $DET_CONTAINER_ID >> {log}; echo out; exit 5",
                environment={"DET_MASTER": url, "DET_RESOURCES_ID": "r", "DET_SESSION_TOKEN": "t"},
            )
            await master.set_desired(*master.desired.values(), desired)
            async with agent(url, tmp_path / "data") as process:
                # The kill falls between the first report about the container and the report of its end.
                report_count = len(master.reports)
                await eventually(functools.partial(has_more, master, report_count + 2))
                process.kill()
        async with agent(url, tmp_path / "data"):
            for desired in list(master.desired.values()):
                assert (await ended(master, desired)).code == 5
                assert master.text_of(desired.container_id) == ["out"]
    started = log.read_text().split()
    assert sorted(started) == sorted(master.desired)


async def test_an_agent_that_is_refused_for_good_exits_with_code_3_and_the_reason(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    master.refuse = Refuse(reason="this pool is not for you", final=True)
    async with serving(master.app()) as url:
        process = await start(url, tmp_path / "data", "--tasks-as-me")
        _, errors = await process.communicate()
    assert process.returncode == 3
    assert b"this pool is not for you" in errors


def test_an_agent_of_an_ordinary_user_needs_tasks_as_me(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(DeterminedError, match=r"only an agent that runs as root .* add --tasks-as-me"):
        check_user(Settings(data=tmp_path))
    check_user(Settings(data=tmp_path, tasks_as_me=True))


async def test_variables_of_the_agents_own_environment_do_not_reach_a_task(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    async with serving(master.app()) as url:
        desired = make_desired(
            "env", environment={"DET_MASTER": url, "DET_RESOURCES_ID": "r", "DET_SESSION_TOKEN": "t"}
        )
        secrets = {"AWS_SECRET_ACCESS_KEY": "hush", "DET_AGENT_LOG_LEVEL": "debug"}
        async with agent(url, tmp_path / "data", environment=secrets):
            await master.set_desired(desired)
            assert (await ended(master, desired)).code == 0
    text = "\n".join(master.text_of(desired.container_id))
    assert "hush" not in text
    assert "DET_AGENT_LOG_LEVEL" not in text
    [path] = [line for line in master.text_of(desired.container_id) if line.startswith("PYTHONPATH=")]
    assert path.startswith(f"PYTHONPATH={tmp_path}/data/harness/")
    assert ":" not in path
