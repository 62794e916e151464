"""The agent's SSH server with clients of the asyncssh package: who is let in, what is bounded, what is left."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from tests.agent.streams.test_session import FakeProgram
from tests.support.free_ports import tcp_pair
from tests.support.waiting import eventually

from determined.link.messages import Execution, SshAccess
from determined.link.run_folder import RunFolder
from determined.streams.records import Kind
from determined_agent.streams.program import NotEntered
from determined_agent.streams.ssh import channels, connection
from determined_agent.streams.ssh.connection import SshConnection, serve_ssh

HOST, ADA, EVE = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(3))


class Entry:
    """Starts fake programs; ``refusal`` is why it does not."""

    def __init__(self) -> None:
        self.programs: list[FakeProgram] = []
        self.executions: list[Execution] = []
        self.ports: list[int] = []
        self.refusal = ""

    async def execute(self, folder: RunFolder, execution: Execution) -> FakeProgram:
        if self.refusal:
            raise NotEntered(self.refusal)
        self.executions.append(execution)
        self.programs.append(FakeProgram(code=len(self.programs)))
        return self.programs[-1]

    async def connect(self, folder: RunFolder, port: int) -> FakeProgram:
        self.ports.append(port)
        return await self.execute(folder, Execution(argv=[]))


class Served:
    """An SSH connection, and the socket of its client."""

    def __init__(self, entry: Entry, server: SshConnection, sock: socket.socket) -> None:
        self.entry, self.server, self.sock = entry, server, sock
        self.kinds: list[Kind] = []

    def connect(self, *keys: asyncssh.SSHKey, **options: Any) -> Any:
        return asyncssh.connect(
            sock=self.sock,
            config=None,
            agent_path=None,
            username="anybody",
            client_keys=list(keys),
            known_hosts=([HOST.convert_to_public()], [], []),
            **options,
        )


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """Yields a connection that lets ADA in. Its bytes pass over a socket, as they do over a stream."""
    entry = Entry()
    public = ADA.export_public_key().decode()
    access = SshAccess(host_key=HOST.export_private_key().decode(), public_keys=[public])
    server = await serve_ssh(entry, RunFolder(Path("c1")), access)
    assert isinstance(server, SshConnection)
    ours, theirs = tcp_pair()
    ours.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    created = Served(entry, server, theirs)

    async def up() -> None:
        while data := await reader.read(1000):
            await server.write(data)
        await server.end_input()

    async def down() -> None:
        while record := await server.read():
            created.kinds.append(record.kind)
            writer.write(record.content)
            await writer.drain()
        writer.close()

    tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        yield created
    finally:
        await server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()
        theirs.close()


async def test_a_program_gets_input_environment_and_terminal_and_its_code_and_output_come_back():
    async with served() as ssh, ssh.connect(ADA) as client:
        process = await client.create_process(
            "cat", env={"LANG": "C"}, term_type="xterm-256color", term_size=(100, 40), encoding=None
        )
        process.change_terminal_size(120, 50)
        process.send_signal("INT")
        process.stdin.write(b"a\x03\xff")
        process.stdin.write_eof()
        done = await process.wait()
        assert (done.stdout, done.exit_status) == (b"a\x03\xff", 0)
    (execution,), (program,) = ssh.entry.executions, ssh.entry.programs
    assert execution.argv[-1] == "cat"
    assert execution.environment == {"LANG": "C"}
    assert (execution.terminal, execution.terminal_type) == ((40, 100), "xterm-256color")
    assert program.calls == [("resize", (50, 120)), ("signal", 2)]
    assert ssh.kinds.count(Kind.ADMITTED) == 1


async def test_several_programs_and_ports_at_once_keep_their_bytes_and_codes_apart():
    async with served() as ssh, ssh.connect(ADA) as client:
        one, two = [await client.create_process("x", encoding=None) for _ in range(2)]
        reader, writer = await client.open_connection("localhost", 8888)
        writer.write(b"to the port")
        assert await reader.readexactly(11) == b"to the port"
        for process, data in ((one, b"1"), (two, b"2")):
            process.stdin.write(data * 100_000)
            process.stdin.write_eof()
        results = [await process.wait() for process in (one, two)]
        assert [(done.stdout, done.exit_status) for done in results] == [(b"1" * 100_000, 0), (b"2" * 100_000, 1)]
        assert ssh.entry.ports == [8888]


async def test_a_program_that_a_signal_ended_says_so_and_one_that_cannot_run_says_why():
    async with served() as ssh, ssh.connect(ADA) as client:
        process = await client.create_process("x")
        ssh.entry.programs[0].status = {"signal": 15}
        process.stdin.write_eof()
        assert (await process.wait()).exit_signal == ("TERM", False, "", "en-US")
        ssh.entry.refusal = "the task has ended"
        done = await client.run("x")
        assert (done.stderr, done.exit_status) == ("the task has ended\n", channels.NOT_RUN)
        with pytest.raises(asyncssh.ChannelOpenError, match="the task has ended"):
            await client.open_connection("localhost", 1)


async def test_the_files_of_the_agent_are_not_served_but_those_of_the_tasks_own_server():
    async with served() as ssh, ssh.connect(ADA) as client:
        await client.create_process(subsystem="sftp", encoding=None)
        with pytest.raises(asyncssh.ChannelOpenError):
            await client.create_process(subsystem="other")
    (execution,) = ssh.entry.executions
    assert "exec" in execution.argv[2]
    assert "the task has no sftp-server" in execution.argv[2]


async def test_another_key_a_password_and_no_key_are_not_let_in():
    for keys, options in (((EVE,), {}), ((), {"password": "x"}), ((), {})):
        async with served() as ssh:
            with pytest.raises(asyncssh.PermissionDenied):
                await ssh.connect(*keys, **options)
            assert Kind.ADMITTED not in ssh.kinds
            await ssh.server.wait()


async def test_a_host_with_another_key_is_not_trusted_by_the_client():
    async with served() as ssh:
        with pytest.raises(asyncssh.HostKeyNotVerifiable):
            await asyncssh.connect(
                sock=ssh.sock, config=None, agent_path=None, client_keys=[ADA], username="x", known_hosts=([], [], [])
            )


async def test_a_client_that_offers_too_many_keys_is_disconnected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "MAX_OFFERED_KEYS", 2)
    async with served() as ssh:
        wrong = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(3)]
        with pytest.raises(asyncssh.DisconnectError, match="none of 2 keys is let in"):
            await ssh.connect(*wrong, ADA)


async def test_a_client_that_does_not_log_in_is_disconnected_after_a_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "LOGIN_SECONDS", 0.05)
    async with served() as ssh:
        assert await ssh.server.wait() == {"code": 0}


async def test_a_client_that_sends_much_before_it_logs_in_is_disconnected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "MAX_LOGIN_BYTES", 1000)
    async with served() as ssh:
        ssh.sock.setblocking(False)
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(ssh.sock, b"SSH-2.0-x\r\n" + bytes(50_000))
        assert await ssh.server.wait() == {"code": 0}


async def test_channels_of_one_connection_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "MAX_CHANNELS", 2)
    async with served() as ssh, ssh.connect(ADA) as client:
        process = await client.create_process("x")
        await client.open_connection("127.0.0.1", 1)
        for more in (client.create_process("x"), client.open_connection("127.0.0.1", 1)):
            with pytest.raises(asyncssh.ChannelOpenError, match="at most 2 channels"):
                await more
        process.stdin.write_eof()
        await process.wait()
        await eventually(lambda: ssh.entry.programs[0].is_closed)
        await client.create_process("x")


async def test_an_environment_beyond_the_bounds_is_refused_in_words(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channels, "MAX_ENVIRONMENT_CHARACTERS", 9)
    async with served() as ssh, ssh.connect(ADA) as client:
        done = await client.run("x", env={"A": "1", "B": "2345678"})
        assert "too many variables: at most 64 with 9 characters in all" in str(done.stderr)
        done = await client.run("x", env={"A-B": "1"})
        assert "a variable that no program can have: 'A-B'" in str(done.stderr)
        assert ssh.entry.executions == []


async def test_a_client_that_sends_variables_without_end_is_disconnected():
    async with served() as ssh, ssh.connect(ADA) as client:
        many = {f"A{number}": "x" * 1000 for number in range(channels.MAX_VARIABLES + 200)}
        with pytest.raises((asyncssh.ChannelOpenError, asyncssh.DisconnectError)):
            await client.create_process("x", env=many)
        await ssh.server.wait()


async def test_a_channel_that_is_closed_makes_room_for_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "MAX_CHANNELS", 2)
    async with served() as ssh, ssh.connect(ADA) as client:
        chans = [await client.create_process(subsystem="sftp", encoding=None) for _ in range(2)]
        with pytest.raises(asyncssh.ChannelOpenError, match="at most 2 channels"):
            await client.create_process("x")
        chans[0].channel.abort()
        await eventually(lambda: ssh.entry.programs[0].is_closed)
        await client.create_process("x")


async def test_other_machines_listeners_and_forwarded_agents_are_refused():
    async with served() as ssh, ssh.connect(ADA, agent_forwarding=False) as client:
        with pytest.raises(asyncssh.ChannelOpenError, match="only ports of the task itself"):
            await client.open_connection("192.0.2.1", 80)
        with pytest.raises(asyncssh.ChannelListenError):
            await client.forward_remote_port("", 0, "localhost", 80)
        with pytest.raises(asyncssh.ChannelOpenError):
            await client.open_unix_connection("/tmp/x")
        assert ssh.entry.ports == []


async def test_programs_end_with_the_connection_whoever_ends_it():
    async with served() as ssh:
        client = await ssh.connect(ADA)
        await client.create_process("x")
        await client.open_connection("localhost", 1)
        client.abort()
        await eventually(lambda: all(program.is_closed for program in ssh.entry.programs))
    async with served() as ssh:
        client = await ssh.connect(ADA)
        await client.create_process("x")
        await ssh.server.close()
        assert [program.is_closed for program in ssh.entry.programs] == [True]
        client.abort()


async def test_input_that_a_program_does_not_take_waits_at_the_client():
    class Stuck(FakeProgram):
        async def write(self, data: bytes) -> None:
            self.calls.append(("write", len(data)))
            await asyncio.Event().wait()

    async with served() as ssh, ssh.connect(ADA) as client:
        stuck = Stuck()

        async def execute(folder: RunFolder, execution: Execution) -> FakeProgram:
            return stuck

        ssh.entry.execute = execute  # type: ignore[method-assign]
        process = await client.create_process("x", encoding=None)
        process.stdin.write(bytes(16 << 20))
        await eventually(lambda: stuck.calls)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await process.stdin.drain()
        client.abort()


async def test_keys_that_cannot_be_read_are_an_error_in_words():
    public = ADA.export_public_key().decode()
    for access in (SshAccess(host_key="x", public_keys=[public]), SshAccess(host_key="x", public_keys=["x"])):
        with pytest.raises(NotEntered, match="the keys for SSH cannot be read"):
            await serve_ssh(Entry(), RunFolder(Path("c1")), access)


class Channel:
    """What a program's channel needs of asyncssh."""

    is_aborted = False

    def pause_reading(self) -> None: ...

    def abort(self) -> None:
        self.is_aborted = True


async def nothing(_: Execution) -> Any:
    raise NotImplementedError


def program_channel() -> tuple[channels.ProgramChannel, Channel]:
    program = channels.ProgramChannel(nothing, lambda _: None, lambda _: None)
    channel = Channel()
    program.connection_made(channel)  # type: ignore[arg-type]
    return program, channel


async def test_of_many_new_sizes_of_a_terminal_only_the_newest_waits():
    program, channel = program_channel()
    for rows in range(1, 10_000):
        program.terminal_size_changed(80, rows, 0, 0)
    record = await program._receive()  # noqa: SLF001
    assert record.value == {"rows": 9999, "columns": 80}
    assert not channel.is_aborted


async def test_a_client_that_floods_a_stopped_program_with_signals_is_cut_off():
    program, channel = program_channel()
    for _ in range(channels.MAX_INBOX_RECORDS + 1):
        program.signal_received("INT")
    assert channel.is_aborted
