"""Runs a program beside a task, with this process's terminal or its input and output."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import sys
import threading
from typing import Any

from determined.client.session import Session
from determined.errors import DeterminedError
from determined.streams.records import Kind, Record, record_of
from determined.streams.windowed import Cut
from determined_cli.streams import local_terminal
from determined_cli.streams.stream_client import StreamClient
from determined_cli.terminal.messages import say

READ_BYTES = 64 << 10
OF_SIGNAL = 128
RESIZE_SECONDS = 0.05
"""Pause between two sizes of a terminal that is being resized."""


class ProgramFailed(DeterminedError):
    """The program did not run."""


def run_in_task(
    session: Session, task_id: str, argv: list[str], *, rank: int = 0, has_input: bool, has_terminal: bool
) -> int:
    """Runs a program beside a task. Returns its exit code, 128 and the number if a signal ended it.

    Args:
        session: of a user who may enter the task.
        task_id: the whole id.
        argv: the program; empty for a shell, which needs a terminal.
        rank: the rank in whose container it runs.
        has_input: passes this process's input on.
        has_terminal: gives it a terminal, which is this process's.

    Raises DeterminedError if it could not run.
    """
    body: dict[str, Any] = {"argv": argv, "rank": rank}
    if has_terminal:
        rows, columns = local_terminal.size()
        body["terminal"] = {"rows": rows, "columns": columns, "type": os.environ.get("TERM") or "xterm"}
    with local_terminal.raw() if has_terminal else contextlib.nullcontext():
        return asyncio.run(_run(session, task_id, body, has_input=has_input, has_terminal=has_terminal))


async def _run(session: Session, task_id: str, body: dict[str, Any], *, has_input: bool, has_terminal: bool) -> int:
    line_end = "\r" if has_terminal else ""
    client = StreamClient(session, task_id, body, lambda why: say(f"{line_end}det: {why}{line_end}"))
    running = asyncio.create_task(client.run())
    output = asyncio.create_task(_print_output(client))
    loop = asyncio.get_running_loop()
    sizes = asyncio.Event()
    others: list[asyncio.Task[None]] = []
    if has_terminal:
        loop.add_signal_handler(signal.SIGWINCH, sizes.set)
        others.append(asyncio.create_task(_send_sizes(client, sizes)))
    else:
        signals: asyncio.Queue[int] = asyncio.Queue()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, signals.put_nowait, number)
        others.append(asyncio.create_task(_send_signals(client, signals, output)))
    if has_input:
        threading.Thread(target=read_input, args=(client, loop), daemon=True).start()
    else:
        others.append(asyncio.create_task(client.stream.send(Record(Kind.END))))
    try:
        await asyncio.wait({running, output}, return_when=asyncio.FIRST_COMPLETED)
        if running.done() or await output is None:
            await running  # raises why
        status = await output or {"error": "the session has ended"}
        with contextlib.suppress(TimeoutError, DeterminedError):
            async with asyncio.timeout(1):  # the agent closes once it knows that the end has come
                await running
    finally:
        for task in (running, output, *others):
            task.cancel()
        await asyncio.gather(running, output, *others, return_exceptions=True)
    if "error" in status:
        raise ProgramFailed(str(status["error"]))
    return int(status["code"]) if "code" in status else OF_SIGNAL + int(status["signal"])


async def _print_output(client: StreamClient) -> dict[str, Any] | None:
    """Prints until the end. Returns the status, or None if the session ended without one."""
    while True:
        try:
            record = await client.stream.receive()
        except Cut:
            return None
        if record.kind is Kind.STATUS:
            await client.stream.acknowledge()
            return record.value
        if record.kind in (Kind.OUTPUT, Kind.ERROR_OUTPUT):
            target = sys.stdout if record.kind is Kind.OUTPUT else sys.stderr
            await asyncio.to_thread(write_all, target.fileno(), record.content)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all bytes. Blocking."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def read_input(client: StreamClient, loop: asyncio.AbstractEventLoop) -> None:
    """Sends this process's input; runs in a thread, because a read of a terminal cannot be canceled."""
    descriptor = sys.stdin.fileno()
    with contextlib.suppress(Cut, RuntimeError, OSError, concurrent.futures.CancelledError):
        while True:
            data = os.read(descriptor, READ_BYTES)
            record = Record(Kind.INPUT, data) if data else Record(Kind.END)
            sent: concurrent.futures.Future[None] = concurrent.futures.Future()
            loop.call_soon_threadsafe(_send, client, record, sent)
            sent.result()
            if not data:
                return


def _send(client: StreamClient, record: Record, sent: "concurrent.futures.Future[None]") -> None:
    """Begins to send in the loop. A coroutine that is made in the thread would never be awaited by a loop that has
    stopped, which Python says on the terminal."""

    def end(sending: "asyncio.Task[None]") -> None:
        if sending.cancelled():
            sent.cancel()
        elif error := sending.exception():
            sent.set_exception(error)
        else:
            sent.set_result(None)

    asyncio.ensure_future(client.stream.send(record)).add_done_callback(end)


async def _send_sizes(client: StreamClient, changed: asyncio.Event) -> None:
    """Sends the newest size after changes; those that follow while one is being sent are one."""
    with contextlib.suppress(Cut):
        while True:
            await changed.wait()
            changed.clear()
            rows, columns = local_terminal.size()
            await client.stream.send(record_of(Kind.RESIZE, {"rows": rows, "columns": columns}))
            await asyncio.sleep(RESIZE_SECONDS)


async def _send_signals(client: StreamClient, signals: "asyncio.Queue[int]", output: "asyncio.Task[Any]") -> None:
    """Passes signals to the program; a second Ctrl-C ends this process."""
    interrupted = False
    with contextlib.suppress(Cut):
        while True:
            number = await signals.get()
            if number == signal.SIGINT and interrupted:
                output.cancel()
                raise KeyboardInterrupt
            interrupted = interrupted or number == signal.SIGINT
            await client.stream.send(record_of(Kind.SIGNAL, {"signal": int(number)}))
