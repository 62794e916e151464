"""Contract tests of every driver: the promises of ``determined_agent.drivers.driver``."""

import asyncio
import os
import re
import signal
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from tests.support.container_engine import ENGINE_URL, need_engine
from tests.support.driver_runs import left_of, make_launch, read_or_nothing, run, shim_of, text_of
from tests.support.podman_engine import podman_engine
from tests.support.waiting import eventually

from determined_agent.drivers import process
from determined_agent.drivers.docker import DockerDriver
from determined_agent.drivers.driver import (
    ContainerLaunch,
    Driver,
    NotStarted,
    OutputLimits,
    ProcessOptions,
    RunEnd,
)
from determined_agent.drivers.engine import Engine
from determined_agent.drivers.fake import FakeDriver, Play
from determined_agent.drivers.process import ProcessDriver
from determined_agent.drivers.shim_forks import ShimForks
from determined_agent.environments.harness_copy import keep_shim
from determined_agent.host_access.mount_probe import can_mount
from determined_agent.task_process.namespaces import Mount
from determined_launch import end_request, process_table


class MakeDriver(Protocol):
    def __call__(self, limits: OutputLimits = OutputLimits()) -> Driver: ...


LABELS = {"detent.agent": "contract"}


def _play(launch: ContainerLaunch) -> Play:
    """Translates the few shell lines of these tests for the fake driver."""
    text = launch.argv[-1]
    if launch.argv[0] == "/nowhere":
        return Play(refuse="/nowhere: no such file")
    code = re.search(r"exit (\d+)", text)
    is_endless = "sleep" in text
    return Play(tuple(re.findall(r"echo (\w+)", text)), None if is_endless else int(code[1]) if code else 0)


_forks: list[ShimForks] = []
"""The fork server that all drivers of this process share, once it is started."""


def _shared_forks() -> ShimForks:
    if not _forks:
        _forks.append(ShimForks(Path(tempfile.mkdtemp())))
        _forks[0].open()
    return _forks[0]


@pytest.fixture(scope="module", autouse=True)
def _ended_forks() -> Iterator[None]:
    yield
    while _forks:
        _forks.pop().close()


def _docker(address: str) -> MakeDriver:
    def make(limits: OutputLimits = OutputLimits()) -> Driver:
        return DockerDriver(Engine(address), keep_shim(Path(tempfile.gettempdir())), labels=LABELS, limits=limits)

    return make


def _process(*, pids: bool, forks: Callable[[], ShimForks | None] = lambda: None) -> MakeDriver:
    def make(limits: OutputLimits = OutputLimits()) -> Driver:
        return ProcessDriver(ProcessOptions(pids=pids, limits=limits), forks())

    return make


DRIVERS: dict[str, MakeDriver] = {
    "process": _process(pids=False),
    "process-pids": _process(pids=True),
    "process-forked": _process(pids=False, forks=_shared_forks),
    "process-pids-forked": _process(pids=True, forks=_shared_forks),
    "fake": lambda limits=OutputLimits(): FakeDriver(_play),
    "docker": _docker(ENGINE_URL),
}
# Pid namespaces are made as root only.
PROCESS = ["process", "process-forked"]
PROCESS += ["process-pids", "process-pids-forked"] if os.geteuid() == 0 else []
DOCKER = pytest.param("docker", marks=pytest.mark.xdist_group("container-engine"))
# tests/agent/drivers/test_podman.py shows the shorter form.
PODMAN = pytest.param("podman", marks=[pytest.mark.xdist_group("podman"), pytest.mark.long])
REAL = [*PROCESS, DOCKER, PODMAN]


@pytest.fixture(scope="module")
def podman() -> Iterator[str]:
    with podman_engine() as address:
        yield address


@pytest.fixture
def make_of(request: pytest.FixtureRequest) -> Callable[[str], MakeDriver]:
    """Returns a function from a driver's name to its constructor. Starts the engine if it belongs to the tests."""

    def make(name: str) -> MakeDriver:
        if name != "podman":
            return DRIVERS[name]
        return _docker(request.getfixturevalue("podman"))

    return make


@pytest.fixture(params=[*REAL, "fake"])
async def make_driver(
    request: pytest.FixtureRequest, make_of: Callable[[str], MakeDriver]
) -> AsyncIterator[MakeDriver]:
    async with _drivers(str(request.param), make_of(str(request.param))) as make:
        yield make


@pytest.fixture(params=REAL)
async def make_real(request: pytest.FixtureRequest, make_of: Callable[[str], MakeDriver]) -> AsyncIterator[MakeDriver]:
    async with _drivers(str(request.param), make_of(str(request.param))) as make:
        yield make


@pytest.fixture(params=PROCESS)
def make_process(request: pytest.FixtureRequest) -> MakeDriver:
    return DRIVERS[str(request.param)]


@asynccontextmanager
async def _drivers(name: str, make_one: MakeDriver) -> AsyncIterator[MakeDriver]:
    if name == "docker":
        need_engine()
    created: list[Driver] = []

    def make(limits: OutputLimits = OutputLimits()) -> Driver:
        created.append(make_one(limits))
        return created[-1]

    yield make
    for driver in created:
        if isinstance(driver, DockerDriver):
            await driver.close()


@pytest.mark.parametrize("code", [0, 1, 77, 255])
async def test_the_exit_code_of_a_task_is_reported(make_driver: MakeDriver, tmp_path: Path, code: int) -> None:
    launch = make_launch(tmp_path, f"echo one; echo two; exit {code}")
    assert await run(make_driver(), launch) == RunEnd("exited", code=code)
    assert text_of(launch.folder) == ["one", "two"]


async def test_a_command_that_does_not_exist_is_not_started(make_driver: MakeDriver, tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match="/nowhere"):
        await make_driver().start(make_launch(tmp_path, "", argv=("/nowhere",)))


async def test_a_stop_ends_a_task_and_is_reported_as_a_stop(make_driver: MakeDriver, tmp_path: Path) -> None:
    driver, launch = make_driver(), make_launch(tmp_path, "sleep 1000")
    await driver.start(launch)
    driver.stop(launch.folder)
    async with asyncio.timeout(20):
        ended = await driver.wait(launch.folder)
    assert (ended.kind, ended.signal) == ("stopped", 9)
    driver.stop(launch.folder)


async def test_stopping_a_task_that_was_never_started_is_no_error(make_driver: MakeDriver, tmp_path: Path) -> None:
    make_driver().stop(make_launch(tmp_path, "true").folder)


async def test_another_driver_takes_over_and_may_wait_after_the_end(make_driver: MakeDriver, tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "sleep 1000")
    await make_driver().start(launch)
    second = make_driver()
    waiting = asyncio.create_task(second.wait(launch.folder))
    second.stop(launch.folder)
    async with asyncio.timeout(20):
        assert (await waiting).kind == "stopped"
        assert (await make_driver().wait(launch.folder)).kind == "stopped"


async def test_cancelling_a_wait_does_not_stop_the_task(make_driver: MakeDriver, tmp_path: Path) -> None:
    driver, launch = make_driver(), make_launch(tmp_path, "sleep 1000")
    await driver.start(launch)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await driver.wait(launch.folder)
    assert not launch.folder.exit.exists()
    driver.stop(launch.folder)
    async with asyncio.timeout(20):
        await driver.wait(launch.folder)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_a_task_ended_by_a_signal_reports_the_signal(
    make_real: MakeDriver, tmp_path: Path, number: signal.Signals
) -> None:
    script = f"import os; os.kill(os.getpid(), {int(number)})"
    launch = make_launch(tmp_path, "", argv=("python3", "-c", script))
    assert await run(make_real(), launch) == RunEnd("exited", signal=int(number))


RUNAWAYS = """
setsid sleep 1001 &
(setsid bash -c 'trap "" TERM HUP INT; sleep 1002 & exec sleep 1003' & )
python3 -c 'import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        signal.pause()
    os._exit(0)
os.wait()'
"""


async def test_no_child_outlives_the_end_of_its_task(make_real: MakeDriver, tmp_path: Path) -> None:
    launch = make_launch(tmp_path, RUNAWAYS + "exit 5")
    assert await run(make_real(), launch) == RunEnd("exited", code=5)
    assert left_of(launch) == set()


async def test_a_child_without_environment_does_not_outlive_its_task(make_real: MakeDriver, tmp_path: Path) -> None:
    """The child carries no mark and has left the session, so the shim has to know its descendants."""
    mark = uuid.uuid4().hex
    child = f"env -i setsid sh -c 'echo > gone; sleep 1006; : {mark}'"
    launch = make_launch(tmp_path, f"mkfifo gone; {child} & read -r < gone; exit 0")
    assert await run(make_real(), launch) == RunEnd("exited", code=0)
    left = {
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in read_or_nothing(path)
    }
    for pid in left:
        os.killpg(pid, signal.SIGKILL)
    assert left == set()


async def test_no_child_outlives_a_stop(make_real: MakeDriver, tmp_path: Path) -> None:
    driver, launch = make_real(), make_launch(tmp_path, RUNAWAYS + "echo ready; sleep 1000")
    await driver.start(launch)
    await eventually(lambda: text_of(launch.folder) == ["ready"])
    driver.stop(launch.folder)
    async with asyncio.timeout(20):
        assert (await driver.wait(launch.folder)).kind == "stopped"
    assert left_of(launch) == set()


LISTENS = f"mkfifo ../{end_request.FIFO}; exec 3<>../{end_request.FIFO}; echo ready; read -r -n 1 <&3; echo asked; "


async def test_a_task_that_listens_ends_by_itself_after_a_stop(make_real: MakeDriver, tmp_path: Path) -> None:
    driver, launch = make_real(), make_launch(tmp_path, LISTENS + "echo stored; kill -9 $$")
    await driver.start(launch)
    await eventually(lambda: text_of(launch.folder) == ["ready"])
    driver.stop(launch.folder)
    async with asyncio.timeout(20):
        ended = await driver.wait(launch.folder)
    assert (ended.kind, ended.signal) == ("stopped", 9)
    assert text_of(launch.folder) == ["ready", "asked", "stored"]


async def test_a_task_that_listens_and_does_not_end_is_killed_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "shim_with_little_time.py"
    shim.write_text(
        "import os, sys\nsys.path += sys.argv[2].split(os.pathsep)\n"
        "from determined_launch import end_request\nend_request.END_SECONDS = 0.3\n"
        "from determined_agent.task_process import shim\nsys.exit(shim.main(sys.argv[1], {}))\n"
    )
    monkeypatch.setattr(process, "_SHIM", shim)
    driver, launch = ProcessDriver(), make_launch(tmp_path, LISTENS + "sleep 1000")
    await driver.start(launch)
    await eventually(lambda: text_of(launch.folder) == ["ready"])
    driver.stop(launch.folder)
    async with asyncio.timeout(20):
        ended = await driver.wait(launch.folder)
    assert (ended.kind, ended.signal) == ("stopped", 9)
    assert text_of(launch.folder) == ["ready", "asked"]
    assert left_of(launch) == set()


@pytest.mark.parametrize("made", ["ln -s /dev/null", "touch", "mkdir", "mkfifo"])
async def test_anything_else_in_the_place_of_the_fifo_changes_no_stop(
    make_real: MakeDriver, tmp_path: Path, made: str
) -> None:
    launch = make_launch(tmp_path, f"{made} ../{end_request.FIFO}; echo ready; sleep 1000")
    driver = make_real()
    await driver.start(launch)
    await eventually(lambda: text_of(launch.folder) == ["ready"])
    driver.stop(launch.folder)
    async with asyncio.timeout(5):
        assert (await driver.wait(launch.folder)).kind == "stopped"


async def test_a_killed_shim_is_a_system_failure_and_no_process_outlives_it(
    make_real: MakeDriver, tmp_path: Path
) -> None:
    driver, launch = make_real(), make_launch(tmp_path, RUNAWAYS + "echo ready; sleep 1000")
    await driver.start(launch)
    await eventually(lambda: text_of(launch.folder) == ["ready"])
    os.kill(shim_of(launch), signal.SIGKILL)
    async with asyncio.timeout(20):
        ended = await driver.wait(launch.folder)
    assert ended.kind == "system"
    assert "shim" in ended.message
    assert left_of(launch) == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="pid namespaces are made as root only")
async def test_in_a_pid_namespace_a_child_without_environment_does_not_outlive_a_killed_shim(tmp_path: Path) -> None:
    driver, launch = (
        DRIVERS["process-pids"](),
        make_launch(tmp_path, "env -i setsid sleep 1005 & echo ready; sleep 1000"),
    )
    await driver.start(launch)
    await eventually(lambda: text_of(launch.folder) == ["ready"])
    shim = shim_of(launch)
    below = process_table.descendants(shim)
    assert len(below) >= 3
    os.kill(shim, signal.SIGKILL)
    async with asyncio.timeout(20):
        await driver.wait(launch.folder)
    await eventually(lambda: not any(process_table.find(pid) for pid in below))


async def test_a_shim_that_starts_after_it_was_reported_dead_does_not_run_its_task(
    make_real: MakeDriver, tmp_path: Path
) -> None:
    driver, launch = make_real(), make_launch(tmp_path, "touch began")
    ended = await driver.wait(launch.folder)
    assert ended.kind == "system"
    await driver.start(launch)
    assert not (launch.folder.workdir / "began").exists()


async def test_a_stop_before_the_shim_listens_is_not_lost(make_real: MakeDriver, tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "sleep 1000")
    await make_real().start(launch)
    launch.folder.stop.touch()
    async with asyncio.timeout(20):
        assert (await make_real().wait(launch.folder)).kind == "stopped"


async def test_a_task_starts_with_plain_signals_a_plain_mask_and_no_strange_descriptors(
    make_real: MakeDriver, tmp_path: Path
) -> None:
    launch = make_launch(tmp_path, "grep -E 'SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd; umask; pwd")
    await run(make_real(), launch)
    blocked, ignored, *rest = text_of(launch.folder)
    assert int(blocked.split()[1], 16) == 0
    # The C library keeps signals 32 and 33 for itself; no program can set them.
    assert int(ignored.split()[1], 16) & ~(3 << 31) == 0
    # 3 is the folder that ls itself reads.
    assert rest == ["0", "1", "2", "3", "0022", str(launch.folder.workdir)]


async def test_all_output_is_stored_in_order_when_a_task_has_ended(make_real: MakeDriver, tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "for i in $(seq 20000); do echo $i; done; printf last")
    await run(make_real(OutputLimits(segment_bytes=1 << 16)), launch)
    assert text_of(launch.folder) == [*map(str, range(1, 20001)), "last"]
    assert len(list(launch.folder.output.iterdir())) > 3


async def test_output_beyond_the_limit_loses_its_middle_and_does_not_block_the_task(tmp_path: Path) -> None:
    launch = make_launch(tmp_path, "for i in $(seq 30000); do echo $i; done")
    limits = OutputLimits(segment_bytes=1 << 12, unsent_bytes=1 << 16)
    assert await run(ProcessDriver(ProcessOptions(limits=limits)), launch) == RunEnd("exited", code=0)
    lines = text_of(launch.folder)
    assert lines[0] == "1"
    assert lines[-1] == "30000"
    assert sum(path.stat().st_size for path in launch.folder.output.iterdir()) <= (1 << 16) + (1 << 13)


@pytest.mark.skipif(not can_mount(), reason="this machine does not allow user namespaces for this user")
async def test_mounts_of_a_task_are_invisible_on_the_host(make_process: MakeDriver, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("here")
    (tmp_path / "x").write_text("!")
    script = """
        cat /a-b/c/file /run/determined/x; echo; ls -d /proc/$$ | sed s/[0-9]*$//
        for path in /a-b/c/y /lost /run/lost; do touch $path || echo refused; done 2>/dev/null
        touch /run/determined/z $DEEP/new
    """
    mounts = (
        Mount(str(source), "/a-b/c", read_only=True),
        Mount(str(tmp_path), "/run/determined"),
        Mount(str(source), str(tmp_path / "deep" / "er")),
    )
    launch = make_launch(tmp_path, script.replace("$DEEP", str(tmp_path / "deep")), mounts=mounts)
    assert await run(make_process(), launch) == RunEnd("exited", code=0)
    assert text_of(launch.folder) == ["here!", "/proc/", "refused", "refused", "refused"]
    assert (tmp_path / "z").exists()
    assert (tmp_path / "deep" / "new").exists()
    assert not Path("/a-b").exists()
    assert not Path("/run/lost").exists()


async def test_a_task_starts_with_the_umask_that_its_user_has(tmp_path: Path):
    launch = make_launch(tmp_path, "umask; touch made")
    before = os.umask(0o077)  # the agent's own
    try:
        assert await run(ProcessDriver(ProcessOptions(umask=0o013)), launch) == RunEnd("exited", code=0)
    finally:
        os.umask(before)
    assert (launch.workdir / "made").stat().st_mode & 0o777 == 0o666 & ~0o013
