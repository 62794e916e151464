"""An SSH connection, as a program whose input and output are its bytes."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Coroutine
from typing import Any

import asyncssh
from asyncssh.constants import (
    DISC_NO_MORE_AUTH_METHODS_AVAILABLE,
    DISC_PROTOCOL_ERROR,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_CONNECT_FAILED,
    OPEN_RESOURCE_SHORTAGE,
)

from determined.link.messages import Execution, SshAccess
from determined.link.run_folder import RunFolder
from determined.streams.records import Kind, Record
from determined_agent.streams.program import READ_BYTES, NotEntered, Program, TaskEntry
from determined_agent.streams.ssh.channels import MAX_VARIABLES, WINDOW_BYTES, PortChannel, ProgramChannel

logger = logging.getLogger(__name__)
asyncssh.set_log_level(logging.WARNING)  # it writes several lines for each connection

LOGIN_SECONDS = 20.0
"""From the first byte until a key is shown that is let in."""
KEEPALIVE_SECONDS = 30
MAX_OFFERED_KEYS = 20
"""Of one connection; a check of one that is not let in is a comparison."""
MAX_LOGIN_BYTES = 256 << 10
"""From a client that has not shown a key that is let in."""
MAX_CHANNELS = 32
"""Open at once in one connection; a browser behind `ssh -L` opens many."""
CLOSE_SECONDS = 15.0
"""Time for programs to end; a task that does not let go of one is left behind."""
# Without Diffie-Hellman over large primes: a client that nobody knows could make the agent compute for long.
KEY_EXCHANGES = ("curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
# A copy costs the agent a third less with them than with the cipher that OpenSSH prefers.
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr")
_OWN_NAMES = ("localhost", "127.0.0.1", "::1", "")


class SshConnection:
    """Serves SSH. Reads and writes of this object are those of the client's bytes."""

    def __init__(self, entry: TaskEntry, folder: RunFolder, access: SshAccess) -> None:
        self._server = _Server(entry, folder, access)
        self._host_key = asyncssh.import_private_key(access.host_key)
        self._login_bytes = 0
        self._is_admission_told = False
        self._is_closed = False
        self._serving: asyncio.Task[None] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Begins to serve. Raises NotEntered."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=READ_BYTES)
        except OSError as problem:
            ours.close()
            theirs.close()
            raise NotEntered(f"cannot start SSH: {problem}") from problem
        self._serving = asyncio.create_task(self._serve(theirs), name="ssh")

    async def read(self) -> Record | None:
        if self._server.is_admitted and not self._is_admission_told:
            self._is_admission_told = True
            return Record(Kind.ADMITTED)
        assert self._reader is not None
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError:
            data = b""
        return Record(Kind.OUTPUT, data) if data else None

    async def write(self, data: bytes) -> None:
        assert self._writer is not None
        if not self._server.is_admitted:
            self._login_bytes += len(data)
            if self._login_bytes > MAX_LOGIN_BYTES:
                self._writer.close()
                return
        self._server.check_variables()
        with contextlib.suppress(OSError, RuntimeError):  # the second: after end_input
            self._writer.write(data)
            await self._writer.drain()

    async def end_input(self) -> None:
        assert self._writer is not None
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write_eof()

    async def resize(self, rows: int, columns: int) -> None:
        """Does nothing: terminals are resized over SSH."""

    async def signal(self, number: int) -> None:
        """Does nothing: signals come over SSH."""

    async def wait(self) -> dict[str, Any]:
        assert self._serving is not None
        await asyncio.wait({self._serving})
        return {"code": 0}

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        await self._server.close()
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _serve(self, sock: socket.socket) -> None:
        try:
            connection = await asyncssh.run_server(
                sock,
                server_factory=lambda: self._server,
                server_host_keys=[self._host_key],
                server_version="Detent",
                public_key_auth=True,
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                gss_host=None,
                login_timeout=LOGIN_SECONDS,
                kex_algs=KEY_EXCHANGES,
                encryption_algs=CIPHERS,
                # A client that is gone is noticed.
                keepalive_interval=KEEPALIVE_SECONDS,
                # Before a key is shown, nothing is unpacked.
                compression_algs=None,
                allow_scp=False,
                agent_forwarding=False,
                x11_forwarding=False,
                line_editor=False,
                encoding=None,
            )
        except (OSError, asyncssh.Error) as problem:
            logger.info("an SSH connection was not admitted: %s", problem)
            return
        try:
            await connection.wait_closed()
        finally:
            connection.abort()


class _Server(asyncssh.SSHServer):
    """Lets the owner of a key in, and opens channels."""

    def __init__(self, entry: TaskEntry, folder: RunFolder, access: SshAccess) -> None:
        self._entry, self._folder = entry, folder
        self._admitted_keys = {asyncssh.import_public_key(key).public_data for key in access.public_keys}
        self._offered = 0
        self._connection: asyncssh.SSHServerConnection | None = None
        self._running: dict[asyncio.Task[None], ProgramChannel | PortChannel] = {}
        self._programs: set[ProgramChannel] = set()
        """Channels of programs that the client has opened, with or without a program."""
        self._opening = 0
        self._is_closed = False
        self.is_admitted = False

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def auth_completed(self) -> None:
        self.is_admitted = True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self._offered += 1
        if self._offered > MAX_OFFERED_KEYS and self._connection is not None:
            reason = f"none of {MAX_OFFERED_KEYS} keys is let in"
            self._connection.disconnect(DISC_NO_MORE_AUTH_METHODS_AVAILABLE, reason)
            return False
        return key.public_data in self._admitted_keys

    def session_requested(self) -> "tuple[asyncssh.SSHServerChannel[bytes], ProgramChannel]":
        self._check_room()
        assert self._connection is not None
        channel = self._connection.create_server_channel(encoding=None, window=WINDOW_BYTES)
        program = ProgramChannel(self._execute, self._start, self._programs.discard)
        self._programs.add(program)
        return channel, program

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> "tuple[asyncssh.SSHTCPChannel[bytes], Coroutine[Any, Any, PortChannel]]":
        self._check_room()
        if dest_host.lower() not in _OWN_NAMES:
            raise asyncssh.ChannelOpenError(
                OPEN_ADMINISTRATIVELY_PROHIBITED, f"only ports of the task itself: localhost, not {dest_host[:80]}"
            )
        assert self._connection is not None
        return self._connection.create_tcp_channel(encoding=None, window=WINDOW_BYTES), self._connect(dest_port)

    async def close(self) -> None:
        """Ends all channels, and waits for the end of their programs."""
        self._is_closed = True
        running = set(self._running)
        for channel in self._running.values():
            channel.end()
        if running:
            # Not canceled while it ends its program, of which something would be left.
            _, left = await asyncio.wait(running, timeout=CLOSE_SECONDS)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def check_variables(self) -> None:
        """Disconnects a client that fills the memory with variables."""
        if self._connection is not None and any(each.has_too_many_variables for each in self._programs):
            self._connection.disconnect(DISC_PROTOCOL_ERROR, f"more than {MAX_VARIABLES} variables")

    async def _execute(self, execution: Execution) -> Program:
        return await self._entry.execute(self._folder, execution)

    async def _connect(self, port: int) -> PortChannel:
        self._opening += 1
        try:
            program = await self._entry.connect(self._folder, port)
            channel = PortChannel(program)
            self._start(channel)
            if self._is_closed:
                channel.end()
            return channel
        except NotEntered as problem:
            raise asyncssh.ChannelOpenError(OPEN_CONNECT_FAILED, problem.message) from problem
        finally:
            self._opening -= 1

    def _check_room(self) -> None:
        if len({*self._programs, *self._running.values()}) + self._opening >= MAX_CHANNELS:
            raise asyncssh.ChannelOpenError(
                OPEN_RESOURCE_SHORTAGE, f"at most {MAX_CHANNELS} channels in one connection"
            )

    def _start(self, channel: ProgramChannel | PortChannel) -> None:
        task = asyncio.create_task(channel.play())
        self._running[task] = channel
        task.add_done_callback(self._running.pop)


async def serve_ssh(entry: TaskEntry, folder: RunFolder, access: SshAccess) -> Program:
    """Begins to serve SSH into a container. Raises NotEntered."""
    try:
        connection = SshConnection(entry, folder, access)
    except (ValueError, asyncssh.Error) as problem:
        raise NotEntered(f"the keys for SSH cannot be read: {problem}") from problem
    await connection.open()
    return connection
