"""Channels of an SSH connection: each is joined with a program or with a port of the task."""

import asyncio
import contextlib
import logging
import re
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import asyncssh
from asyncssh.constants import EXTENDED_DATA_STDERR

from determined.link.messages import Execution
from determined.streams.records import Kind, Record, StreamBroken, record_of
from determined_agent.streams.joined import MAX_NUMBER, join
from determined_agent.streams.program import NotEntered, Program

logger = logging.getLogger(__name__)

WINDOW_BYTES = 512 << 10
"""Of input of one channel that its program has not taken."""
MAX_INBOX_BYTES = 64 << 10
MAX_INBOX_RECORDS = 4096
"""More than one window of input and a few signals make, of a client that sends each byte alone."""
MAX_COMMAND_CHARACTERS = 64 << 10
MAX_VARIABLES = 64
MAX_ENVIRONMENT_CHARACTERS = 32 << 10
NOT_RUN = 126
"""Exit code of a program that could not be started, as that of a shell."""
START_SECONDS = 30.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_TERMINAL_TYPE = re.compile(r"[A-Za-z0-9._+-]{1,64}")
_COMMAND = (
    "sh",
    "-c",
    'exec "$(command -v "${SHELL:-bash}" || command -v bash || command -v sh)" -c "$1"',
    "sh",
)
_SFTP = (
    "sh",
    "-c",
    "for server in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server"
    ' /usr/libexec/sftp-server /usr/lib/sftp-server "$(command -v sftp-server)"; do'
    ' [ ! -x "$server" ] || exec "$server"; done;'
    ' echo "the task has no sftp-server: install openssh-sftp-server in its image, or copy with scp -O or rsync" >&2;'
    " exit 127",
)


class _JoinedChannel:
    """What both kinds of channels share: input that waits for the program, and output that waits for the client."""

    def __init__(self) -> None:
        self._channel: asyncssh.SSHServerChannel[bytes] | asyncssh.SSHTCPChannel[bytes] | None = None
        self._inbox: deque[Record] = deque()
        self._waiting_bytes = 0
        self._is_paused = False
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._gone = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def end(self) -> None:
        """Ends the program or the connection; ``play`` returns when nothing is left of it."""
        self._gone.set()
        self._has_room.set()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        for start in range(0, len(data), MAX_INBOX_BYTES):
            self._put(Record(Kind.INPUT, data[start : start + MAX_INBOX_BYTES]))

    def eof_received(self) -> bool:
        self._put(Record(Kind.END))
        return True  # the other direction stays open

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    def _put(self, record: Record) -> None:
        if len(self._inbox) >= MAX_INBOX_RECORDS:  # requests come also while reading is paused
            if self._channel is not None:
                self._channel.abort()
            self.end()
            return
        if record.kind is Kind.RESIZE and self._inbox and self._inbox[-1].kind is Kind.RESIZE:
            self._inbox.pop()  # only the newest size counts
        self._inbox.append(record)
        self._waiting_bytes += len(record.content)
        if self._waiting_bytes >= MAX_INBOX_BYTES and not self._is_paused and self._channel is not None:
            self._is_paused = True
            self._channel.pause_reading()
        self._arrived.set()

    async def _receive(self) -> Record:
        while not self._inbox:
            self._arrived.clear()
            await self._arrived.wait()
        record = self._inbox.popleft()
        self._waiting_bytes -= len(record.content)
        if self._is_paused and self._waiting_bytes < MAX_INBOX_BYTES and self._channel is not None:
            self._is_paused = False
            self._channel.resume_reading()
        return record

    async def _send(self, record: Record) -> None:
        await self._has_room.wait()
        if self._channel is None or self._gone.is_set():
            return
        with contextlib.suppress(OSError, asyncssh.Error):
            if record.kind is Kind.END:
                self._channel.write_eof()
            else:
                datatype = EXTENDED_DATA_STDERR if record.kind is Kind.ERROR_OUTPUT else None
                self._channel.write(record.content, datatype)

    async def _join(self, program: Program) -> dict[str, Any]:
        """Returns the status of the program after its end, or that of one that was ended with the channel."""
        try:
            return await join(program, self._send, self._receive, self._gone) or {"signal": int(signal.SIGKILL)}
        except StreamBroken as problem:
            return {"error": problem.message}
        finally:
            await program.close()


class ProgramChannel(_JoinedChannel, asyncssh.SSHServerSession[bytes]):
    """A session: a command, a shell or the SFTP server of the task."""

    def __init__(
        self,
        execute: Callable[[Execution], Awaitable[Program]],
        start: "Callable[[ProgramChannel], None]",
        on_lost: "Callable[[ProgramChannel], None]",
    ) -> None:
        """
        Args:
            execute: runs a program beside the task.
            start: runs ``play`` of this channel.
            on_lost: is called when it has closed.
        """
        super().__init__()
        self._execute, self._start, self._on_lost = execute, start, on_lost
        self._server_channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._terminal_type: str | None = None
        self._size = (24, 80)
        self._argv: tuple[str, ...] = ()

    def connection_made(self, chan: "asyncssh.SSHServerChannel[bytes]") -> None:
        self._channel = self._server_channel = chan

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_lost(self)

    @property
    def has_too_many_variables(self) -> bool:
        """Returns True if the client has sent more than a program may have. It may send them at any time."""
        return self._server_channel is not None and len(self._server_channel.get_environment_bytes()) > MAX_VARIABLES

    def pty_requested(self, term_type: str, term_size: tuple[int, int, int, int], term_modes: object) -> bool:
        self._terminal_type = term_type if _TERMINAL_TYPE.fullmatch(term_type) else "xterm"
        self._size = _cells(term_size[1], term_size[0])
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._argv = (*_COMMAND, command)
        return len(command) <= MAX_COMMAND_CHARACTERS and "\0" not in command

    def subsystem_requested(self, subsystem: str) -> bool:
        self._argv = _SFTP
        return subsystem == "sftp"

    def session_started(self) -> None:
        self._start(self)

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        rows, columns = _cells(height, width)
        self._put(record_of(Kind.RESIZE, {"rows": rows, "columns": columns}))

    def signal_received(self, signal: str) -> None:
        if number := _signal_number(signal):
            self._put(record_of(Kind.SIGNAL, {"signal": number}))

    def break_received(self, msec: int) -> bool:
        self._put(record_of(Kind.SIGNAL, {"signal": int(signal.SIGINT)}))
        return True

    async def play(self) -> None:
        """Runs the program until it or the channel has ended."""
        channel = self._server_channel
        assert channel is not None
        try:
            has_terminal = self._terminal_type is not None
            execution = Execution(
                argv=list(self._argv),
                terminal=self._size if has_terminal else None,
                terminal_type=self._terminal_type or "",
                environment=_environment(channel.get_environment()),
            )
            program = await self._execute(execution)
        except NotEntered as problem:
            status: dict[str, Any] = {"error": problem.message}
        except Exception:
            logger.exception("a program could not be started for SSH")
            status = {"error": "the agent could not start the program; its log says why"}
        else:
            status = await self._join(program)
        _finish(channel, status)


class PortChannel(_JoinedChannel, asyncssh.SSHTCPSession[bytes]):
    """A connection to a port of the task."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program
        self._has_room.clear()  # until the channel is open

    def connection_made(self, chan: "asyncssh.SSHTCPChannel[bytes]") -> None:
        self._channel = chan

    def session_started(self) -> None:
        self._has_room.set()

    async def play(self) -> None:
        """Passes bytes on until one side has ended."""
        await self._join(self._program)
        if self._channel is not None:
            self._channel.close()


def _finish(channel: "asyncssh.SSHServerChannel[bytes]", status: dict[str, Any]) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):  # the client has gone
        if "code" in status:
            channel.exit(int(status["code"]) & 0xFF)
        elif "signal" in status:
            number = int(status["signal"])
            if number in set(signal.Signals):
                channel.exit_with_signal(signal.Signals(number).name.removeprefix("SIG"))
            else:
                channel.exit(128 + number & 0xFF)
        else:
            channel.write_stderr(f"{status['error']}\n".encode())
            channel.exit(NOT_RUN)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Raises NotEntered for more than the bounds allow, and for names that no shell knows."""
    found = dict(variables)
    if len(found) > MAX_VARIABLES or sum(map(len, (*found, *found.values()))) > MAX_ENVIRONMENT_CHARACTERS:
        raise NotEntered(
            f"ssh sends too many variables: at most {MAX_VARIABLES} with {MAX_ENVIRONMENT_CHARACTERS} characters in all"
        )
    for name, value in found.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise NotEntered(f"ssh sends a variable that no program can have: {name[:80]!r}")
    return found


def _cells(rows: int, columns: int) -> tuple[int, int]:
    return min(max(1, rows), MAX_NUMBER), min(max(1, columns), MAX_NUMBER)


def _signal_number(name: str) -> int:
    found = getattr(signal, f"SIG{name}", 0) if re.fullmatch("[A-Z0-9]{2,10}", name) else 0
    return int(found) if isinstance(found, signal.Signals) else 0
