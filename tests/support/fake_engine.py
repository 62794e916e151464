"""A container engine's API on a unix socket. It runs nothing, records every call and gives the answers of a test.

The real engine passes the same tests of the driver (tests/contract/test_driver.py). This one records the exact calls,
and fails in ways that a real engine cannot.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Answer = tuple[int, Any]
Rule = Callable[["Call"], Answer | None]


@dataclass(frozen=True)
class Call:
    """One request. ``path`` has no version prefix; ``body`` is the decoded JSON, or None."""

    method: str
    path: str
    query: str
    body: Any

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class FakeEngine:
    """Answers with the first matching rule of ``rules``. ``status`` is the status of every container."""

    api_version: str = "1.41"
    rules: list[Rule] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=lambda: {"Status": "running", "OOMKilled": False, "ExitCode": 0})
    output: bytes = b"started\n"
    """Output that a container prints at its start."""
    exists: bool = False
    slow: str = ""
    """Path that never gets an answer."""
    is_away: bool = False
    """True to break every connection."""
    _starts: dict[str, asyncio.Event] = field(default_factory=dict)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    followers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def lines(self) -> list[str]:
        """Returns the calls as ``METHOD PATH``, without requests for the version and for events."""
        return [call.line for call in self.calls if call.path not in ("/version", "/events")]

    async def tell(self, name: str, action: str = "die") -> None:
        """Sends an event about a container."""
        event = {"Type": "container", "Action": action, "Actor": {"Attributes": {"name": name}}}
        data = json.dumps(event).encode() + b"\n"
        for writer in self.followers:
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self.followers.discard(writer)
            writer.transport.abort()

    async def close(self) -> None:
        """Breaks every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the next iteration of the loop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while (call := await _read(reader)) is not None:
                self.calls.append(call)
                if self.is_away:
                    break
                if self.slow and call.path == self.slow:
                    await reader.read()
                    break
                if call.path == "/events":
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    self.followers.add(writer)
                    await reader.read()
                    break
                if call.path.endswith("/attach"):
                    await self._attach(call, writer)
                    break
                _write(writer, *self._answer(call))

    def _answer(self, call: Call) -> Answer:
        for rule in self.rules:
            answer = rule(call)
            if answer is not None:
                return answer
        if call.path == "/version":
            return 200, {"ApiVersion": self.api_version, "Version": "1"}
        if call.line == "POST /containers/create":
            self.exists = True
            return 201, {"Id": "made", "Warnings": []}
        if call.method == "GET" and re.fullmatch(r"/containers/[^/]+/json", call.path):
            return (
                (200, {"Id": "made", "State": self.status}) if self.exists else (404, {"message": "no such container"})
            )
        if call.method == "DELETE":
            was_there, self.exists = self.exists, False
            return (204, None) if was_there else (404, {"message": "no such container"})
        if call.method == "POST":
            if call.path.endswith("/start"):
                self._starts[call.path].set()
            return 204, None
        return 404, {"message": f"no such page: {call.path}"}

    async def _attach(self, call: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n")
        await writer.drain()
        start = self._starts.setdefault(call.path.replace("/attach", "/start"), asyncio.Event())
        async with asyncio.timeout(10):
            await start.wait()
        if self.output:
            writer.write(b"\x01\0\0\0" + len(self.output).to_bytes(4) + self.output)
            await writer.drain()


@contextlib.asynccontextmanager
async def fake_engine(path: Path, **fields: Any) -> AsyncIterator[FakeEngine]:
    """Serves a fake engine at the socket ``path``. ``given``: its fields."""
    engine = FakeEngine(**fields)
    server = await asyncio.start_unix_server(engine.serve, path)
    try:
        yield engine
    finally:
        server.close()
        await engine.close()


async def _read(reader: asyncio.StreamReader) -> Call | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *headers = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    sizes = [int(line.split(":")[1]) for line in headers if line.lower().startswith("content-length:")]
    body = await reader.readexactly(sizes[0]) if sizes else b""
    path, _, query = target.partition("?")
    return Call(method, re.sub(r"^/v[\d.]+", "", path), query, json.loads(body) if body else None)


def _write(writer: asyncio.StreamWriter, status: int, body: Any) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
