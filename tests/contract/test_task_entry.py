"""Contract tests of everything that starts programs beside tasks: as processes and in containers of an engine."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.container_engine import ENGINE_URL, need_engine
from tests.support.driver_runs import make_launch, text_of
from tests.support.waiting import eventually

from determined.link.messages import Execution
from determined.streams.records import Kind
from determined_agent.drivers.docker import DockerDriver
from determined_agent.drivers.driver import ContainerLaunch, Driver, ProcessOptions
from determined_agent.drivers.engine import Engine
from determined_agent.drivers.process import ProcessDriver
from determined_agent.environments.harness_copy import keep_shim
from determined_agent.hooks.identity import hand_over_folder
from determined_agent.streams import process_entry
from determined_agent.streams.container_entry import ContainerEntry
from determined_agent.streams.process_entry import ProcessEntry
from determined_agent.streams.program import NotEntered, Program, TaskEntry
from determined_agent.task_process.identity import Identity
from determined_agent.task_process.namespaces import Mount
from determined_launch import process_table

LABELS = {"detent.agent": "entry"}
IDLE = "export FROM_TASK='a b'; cd /tmp; echo ready; exec sleep 1000"
LISTENS = f"""exec {sys.executable if os.path.exists(sys.executable) else "python3"} -c "
import socket, time
server = socket.create_server(('127.0.0.1', 0))
print('port', server.getsockname()[1], flush=True)
while True:
    peer, _ = server.accept()
    peer.sendall(peer.makefile('rb').read().upper())
    peer.close()
"
"""


@dataclass
class Entered:
    """A driver with its task and its entry."""

    driver: Driver
    entry: TaskEntry
    launch: ContainerLaunch

    async def execute(self, *argv: str, **more: object) -> Program:
        return await self.entry.execute(self.launch.folder, Execution(argv=list(argv), **more))

    async def lines(self) -> list[str]:
        return await eventually(lambda: text_of(self.launch.folder))


def _process(*, pids: bool) -> Callable[[], tuple[Driver, TaskEntry]]:
    return lambda: (ProcessDriver(ProcessOptions(pids=pids)), ProcessEntry())


def _docker() -> tuple[Driver, TaskEntry]:
    need_engine()
    engine = Engine(ENGINE_URL)
    return DockerDriver(engine, keep_shim(Path(tempfile.gettempdir())), labels=LABELS), ContainerEntry(engine)


DRIVERS = {"process": _process(pids=False), "process-pids": _process(pids=True), "docker": _docker}
NAMES = [
    "process",
    *(["process-pids"] if os.geteuid() == 0 else []),
    pytest.param("docker", marks=pytest.mark.xdist_group("container-engine")),
]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def entered(name: str, folder: Path, script: str = IDLE) -> AsyncIterator[Entered]:
    driver, entry = DRIVERS[name]()
    launch = make_launch(folder, script)
    launch = replace(launch, environment={**launch.environment, "OF_ORDER": "yes"})
    await driver.start(launch)
    try:
        task = Entered(driver, entry, launch)
        await task.lines()
        yield task
    finally:
        driver.stop(launch.folder)
        await driver.wait(launch.folder)
        if isinstance(driver, DockerDriver):
            await driver.close()


async def output_of(program: Program) -> tuple[bytes, bytes, dict[str, object]]:
    """Returns both outputs and the status, after the program has ended and was closed."""
    parts = {Kind.OUTPUT: b"", Kind.ERROR_OUTPUT: b""}
    try:
        async with asyncio.timeout(30):
            while (record := await program.read()) is not None:
                parts[record.kind] += record.content
            status = await program.wait()
    finally:
        await program.close()
    return parts[Kind.OUTPUT], parts[Kind.ERROR_OUTPUT], status


async def read_until(program: Program, text: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(30):
        while text not in seen:
            record = await program.read()
            assert record is not None, seen
            seen += record.content
    return seen


async def test_a_program_has_the_tasks_environment_folder_and_user_and_its_own_outputs_and_code(
    name: str, tmp_path: Path
):
    async with entered(name, tmp_path) as task:
        script = "echo $OF_ORDER $FROM_TASK; pwd; id -u; echo bad >&2; exit 3"
        out, err, status = await output_of(await task.execute("sh", "-c", script))
    from_task = "a b" if name != "docker" else ""  # an engine tells nothing of what the task has exported
    folder = str(task.launch.workdir)
    assert out.decode().splitlines() == [f"yes {from_task}".strip(), folder, str(os.geteuid())]
    assert (err, status) == (b"bad\n", {"code": 3})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs tasks as other users")
@pytest.mark.parametrize("terminal", [None, (24, 80)], ids=["pipes", "terminal"])
async def test_a_program_beside_a_task_of_a_linked_user_is_that_users(
    tmp_path_factory: pytest.TempPathFactory, terminal: tuple[int, int] | None
):
    driver, launch = ProcessDriver(ProcessOptions(pids=True)), make_launch(tmp_path_factory.mktemp("ann"), "")
    ann, run = Identity(54001, 54001, (54001,), "ann", "ann"), Path("/run/determined")
    script = "ulimit -n 77; echo ready; exec sleep 1000"
    launch = replace(
        launch,
        argv=("bash", "-c", script),
        identity=ann,
        mounts=(Mount(str(launch.folder.run), str(run)),),
        workdir=run / "workdir",
    )
    hand_over_folder(launch.folder, ann, is_container=False)
    await driver.start(launch)
    try:
        await eventually(lambda: text_of(launch.folder))
        show = "id -u; pwd; ulimit -n; grep NoNewPrivs /proc/self/status; ! test -t 0 || : > $(tty); echo $?"
        kind = "xterm" if terminal else ""
        execution = Execution(argv=["sh", "-c", show], terminal=terminal, terminal_type=kind)
        out, err, status = await output_of(await ProcessEntry().execute(launch.folder, execution))
    finally:
        driver.stop(launch.folder)
        await driver.wait(launch.folder)
    words = out.decode().split()
    assert (words, err, status) == (
        ["54001", "/run/determined/workdir", "77", "NoNewPrivs:", "1", "0"],
        b"",
        {"code": 0},
    )


async def test_a_program_reads_its_input_to_the_end(name: str, tmp_path: Path):
    async with entered(name, tmp_path) as task:
        program = await task.execute("wc", "-c")
        for _ in range(10):
            await program.write(bytes(30_000))
        await program.end_input()
        out, _, status = await output_of(program)
    assert (out.strip(), status) == (b"300000", {"code": 0})


async def test_a_program_on_a_terminal_has_its_size_and_type_and_gets_the_signals_of_its_keys(
    name: str, tmp_path: Path
):
    async with entered(name, tmp_path) as task:
        program = await task.execute("sh", terminal=(40, 100), terminal_type="xterm-256color")
        await program.write(b"stty size; echo $TERM; tty\n")
        seen = await read_until(program, b"/dev/pts/")
        assert b"40 100" in seen
        assert b"xterm-256color" in seen
        await program.resize(50, 120)
        await program.write(b"stty size\n")
        await read_until(program, b"50 120")
        await program.write(b"(echo star'ted'; exec sleep 1000)\n")
        await read_until(program, b"started")
        await program.write(b"\x03")
        await program.write(b"echo code=$?\n")
        await read_until(program, b"code=130")
        await program.write(b"exit 5\n")
        _, _, status = await output_of(program)
    assert status == {"code": 5}


async def test_a_terminal_without_a_program_has_a_shell(name: str, tmp_path: Path):
    async with entered(name, tmp_path) as task:
        program = await task.execute(terminal=(24, 80), terminal_type="xterm")
        await program.write(b"echo $((6 * 7))\n")
        await read_until(program, b"42")
        await program.close()


async def test_a_program_that_does_not_exist_is_named(name: str, tmp_path: Path):
    async with entered(name, tmp_path) as task:
        out, err, status = await output_of(await task.execute("/no/such/program"))
    assert "/no/such/program" in f"{out!r}{err!r}{status}"
    assert status.get("code") != 0


async def test_a_signal_ends_the_program_and_not_the_task(name: str, tmp_path: Path):
    async with entered(name, tmp_path) as task:
        program = await task.execute("sh", "-c", "echo up; exec sleep 1000")
        await read_until(program, b"up")
        await program.signal(signal.SIGTERM)
        _, _, status = await output_of(program)
        assert status in ({"signal": signal.SIGTERM}, {"code": 128 + signal.SIGTERM})
        assert (await output_of(await task.execute("echo", "alive")))[0] == b"alive\n"


async def test_closing_ends_everything_that_the_program_started(name: str, tmp_path: Path):
    def left() -> list[int]:
        return [pid for pid in process_table.pids() if b"77777" in process_table.command_line(pid)]

    async with entered(name, tmp_path) as task:
        program = await task.execute("sh", "-c", "setsid sleep 77777 & sleep 77777 & echo up; wait")
        await read_until(program, b"up")
        assert await eventually(lambda: len(left()) >= 2)
        await program.close()
        await eventually(lambda: not left())
        assert (await task.lines())[-1] == "ready"


async def test_bytes_go_both_ways_between_a_stream_and_a_port_of_the_task(name: str, tmp_path: Path):
    script = LISTENS if name != "docker" else LISTENS.replace(sys.executable, "python3")
    async with entered(name, tmp_path, script) as task:
        port = int((await task.lines())[-1].removeprefix("port "))
        connection = await task.entry.connect(task.launch.folder, port)
        for _ in range(20):
            await connection.write(b"abc" * 10_000)
        await connection.end_input()
        out, _, _ = await output_of(connection)
    assert out == b"ABC" * 200_000


async def test_a_port_on_which_nobody_listens_is_named(name: str, tmp_path: Path):
    async with entered(name, tmp_path) as task:
        with pytest.raises(NotEntered, match="cannot connect to port 1 of the task: nobody listens there"):
            await task.entry.connect(task.launch.folder, 1)


async def test_a_task_that_has_ended_is_not_entered(name: str, tmp_path: Path):
    async with entered(name, tmp_path) as task:
        task.driver.stop(task.launch.folder)
        await task.driver.wait(task.launch.folder)
        with pytest.raises(NotEntered):
            await task.execute("true")


async def test_a_helper_that_dies_before_its_order_is_named_and_leaves_no_task_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    died = tmp_path / "died.py"
    died.write_text("")
    monkeypatch.setattr(process_entry, "_ENTER_TASK", died)
    async with entered("process", tmp_path / "run") as task:
        tasks, descriptors = asyncio.all_tasks(), len(os.listdir("/proc/self/fd"))
        with pytest.raises(NotEntered, match="Broken pipe"):
            await task.execute("true", "x" * (1 << 20))  # longer than a pipe holds
        assert asyncio.all_tasks() == tasks
        assert len(os.listdir("/proc/self/fd")) == descriptors
