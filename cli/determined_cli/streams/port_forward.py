"""Listens on a port of this machine and passes each connection to a port of a task."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable
from functools import partial

from determined.client.session import Session
from determined.errors import BadRequest, DeterminedError
from determined.streams.records import Kind, Record
from determined.streams.windowed import Cut
from determined_cli.streams.stream_client import StreamClient
from determined_cli.terminal.messages import say

READ_BYTES = 64 << 10
MAX_PORT = 65535
HOST = "127.0.0.1"


def ports_of(text: str) -> tuple[int, int]:
    """Returns the local and the task's port of ``[LOCAL:]REMOTE``. Local 0: any free one. Raises BadRequest.

    >>> ports_of("8888"), ports_of("9000:8888"), ports_of(":8888")
    ((8888, 8888), (9000, 8888), (0, 8888))
    """
    local, separator, remote = text.rpartition(":")
    numbers = (local or "0" if separator else remote, remote)
    if not all(number.isascii() and number.isdecimal() and len(number) <= len(str(MAX_PORT)) for number in numbers):
        raise BadRequest(f"'{text}' is no port; give PORT or LOCAL:REMOTE, such as 8888 or 9000:8888")
    ours, theirs = int(numbers[0]), int(numbers[1])
    if ours > MAX_PORT or not 0 < theirs <= MAX_PORT:
        raise BadRequest(f"'{text}': ports are numbers from 1 to {MAX_PORT}")
    return ours, theirs


def forward(
    session: Session,
    task_id: str,
    ports: list[tuple[int, int]],
    *,
    rank: int = 0,
    announce: Callable[[str], object] = partial(print, flush=True),
) -> None:
    """Forwards until Ctrl-C; in a thread beside the main one until the process ends.

    Raises DeterminedError if a port of this machine is taken. ``announce`` is called with a line for each open port.
    """
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_forward(session, task_id, ports, rank, announce))


async def _forward(
    session: Session, task_id: str, ports: list[tuple[int, int]], rank: int, announce: Callable[[str], object]
) -> None:
    serving: set[asyncio.Task[None]] = set()
    with contextlib.ExitStack() as stack:
        for local, remote in ports:

            def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remote: int = remote) -> None:
                body = {"port": remote, "rank": rank}
                task = asyncio.create_task(_serve(session, task_id, body, reader, writer))
                serving.add(task)
                task.add_done_callback(serving.discard)

            try:
                server = await asyncio.start_server(serve, HOST, local, limit=READ_BYTES)
            except OSError as problem:
                raise DeterminedError(f"cannot listen on port {local} of this machine: {problem.strerror}") from problem
            # Closed without a wait for its connections, which `asyncio.run` ends after this function.
            stack.callback(server.close)
            place = server.sockets[0].getsockname()[1]
            announce(f"Forwarding {HOST}:{place} to port {remote} of task {task_id}")
        interrupted = asyncio.Event()
        if threading.current_thread() is threading.main_thread():
            # Wakes the loop always: the handler of `asyncio.run` is not called before the next event if the signal
            # comes just before the loop waits.
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
        await interrupted.wait()


async def _serve(
    session: Session,
    task_id: str,
    body: dict[str, int],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Passes one connection on until both directions have ended, or the local program has reset it."""
    client = StreamClient(session, task_id, body)
    running = asyncio.create_task(client.run())
    sending = asyncio.create_task(_send(client, reader))
    receiving = asyncio.create_task(_receive(client, writer))
    try:
        await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
        is_reset = sending.done() and sending.result()
        problem = "" if is_reset else await receiving
        if problem:
            say(f"det: {problem}")
        elif running.done():
            running.result()
    except DeterminedError as error:
        say(f"det: {error.message}")
    finally:
        tasks = (receiving, sending, running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()


async def _send(client: StreamClient, reader: asyncio.StreamReader) -> bool:
    """Returns True if the local program has reset the connection: nothing goes in either direction any more."""
    with contextlib.suppress(Cut):
        try:
            while data := await reader.read(READ_BYTES):
                await client.stream.send(Record(Kind.INPUT, data))
        except OSError:
            return True
        await client.stream.send(Record(Kind.END))
    return False


async def _receive(client: StreamClient, writer: asyncio.StreamWriter) -> str:
    """Returns why there is no connection, or an empty text."""
    with contextlib.suppress(Cut, OSError):
        while True:
            record = await client.stream.receive()
            if record.kind is Kind.OUTPUT:
                writer.write(record.content)
                await writer.drain()
            elif record.kind is Kind.END:
                writer.write_eof()
            elif record.kind is Kind.STATUS:
                await client.stream.acknowledge()
                return str(record.value.get("error") or "")
    return ""
