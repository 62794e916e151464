"""``det ssh-config --connect HOST``: passes the bytes of an OpenSSH client on to a task."""

import asyncio
import contextlib
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

from determined.client import ids, trials
from determined.client.session import Session
from determined.errors import BadRequest, DeterminedError
from determined.streams.records import Kind
from determined.streams.windowed import Cut
from determined_cli import connection
from determined_cli.ssh.files import SshFiles
from determined_cli.streams.execution import read_input, write_all
from determined_cli.streams.stream_client import StreamClient
from determined_cli.terminal.messages import say

PREFIXES = ("det-trial-", "det-task-", "det-shell-")
FAILED = 255
"""Exit code of ssh itself for errors of its own."""
_HOST = re.compile(r"det-(trial|task|shell)-([0-9a-zA-Z._-]{1,255}?)(?:-rank-([0-9]{1,9}))?")


class Destination(NamedTuple):
    """What a host name names: a trial, or a task of any kind."""

    kind: str
    id: str
    rank: int


def destination(host: str) -> Destination:
    """Returns what a host name names. Raises BadRequest.

    >>> destination("det-trial-7"), destination("det-task-3f2b-rank-1")
    (Destination(kind='trial', id='7', rank=0), Destination(kind='task', id='3f2b', rank=1))
    """
    match = _HOST.fullmatch(host)
    if match is None or (match[1] == "trial" and not match[2].isdecimal()):
        raise BadRequest(f"'{host[:80]}' is no host of a task; det-trial-ID, det-task-ID or det-task-ID-rank-N is one")
    return Destination(match[1], match[2], int(match[3] or 0))


def run(options: connection.Options, host: str) -> int:
    """Connects standard input and output with the SSH of a task, until one side ends. Raises DeterminedError."""
    place = destination(host)
    session = connection.connect(options)
    files = SshFiles(Path.home() / ".ssh")
    body = {"rank": place.rank, "ssh": {"publicKey": files.public_key}}
    return asyncio.run(_pass_on(session, _task_id(session, place), body, files, host))


def _task_id(session: Session, place: Destination) -> str:
    if place.kind == "trial":
        return str(trials.get(session, int(place.id))["taskId"])
    return ids.resolve(session, "task", place.id)


async def _pass_on(session: Session, task_id: str, body: dict[str, Any], files: SshFiles, host: str) -> int:
    client = StreamClient(
        session,
        task_id,
        body,
        on_cut=lambda why: say(f"det: {why}\r"),
        on_answer=lambda answer: files.learn(host, str(answer["hostKey"])),
    )
    running = asyncio.create_task(client.run())
    output = asyncio.create_task(_print_output(client))
    ended = asyncio.Event()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # ssh ends it so; what it began then ends at once
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    leaving = asyncio.create_task(ended.wait())
    threading.Thread(target=read_input, args=(client, asyncio.get_running_loop()), daemon=True).start()
    try:
        await asyncio.wait({running, output, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            return FAILED
        if running.done():
            await running  # raises why
        problem = await output
        with contextlib.suppress(TimeoutError, DeterminedError):
            async with asyncio.timeout(1):  # the agent closes once it knows that the end has come
                await running
    finally:
        for task in (running, output, leaving):
            task.cancel()
        await asyncio.gather(running, output, leaving, return_exceptions=True)
    if problem:
        say(f"det: {problem}")
        return FAILED
    return 0


async def _print_output(client: StreamClient) -> str:
    """Prints until the end. Returns why the stream has ended, or an empty text."""
    with contextlib.suppress(Cut):
        while True:
            record = await client.stream.receive()
            if record.kind is Kind.STATUS:
                await client.stream.acknowledge()
                return str(record.value.get("error") or "")
            if record.kind is Kind.OUTPUT:
                await asyncio.to_thread(write_all, sys.stdout.fileno(), record.content)
    return ""
