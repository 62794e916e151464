"""Clients that follow one trial's log, in each form that the master offers, and clients that stop reading it."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import httpx

FORMS = ("trial", "task", "page")


@dataclass
class Follower:
    """A client that follows a log. ``ids`` and ``texts`` of the lines are in order of arrival."""

    form: str
    ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    async def follow(self, client: httpx.AsyncClient, trial_id: int, task_id: str, last: str) -> None:
        """Follows until the end of the stream, or, for a page, which has no end, until the line ``last``."""
        if self.form == "page":
            await self._follow_pages(client, trial_id, last)
            return
        path = f"/api/v1/trials/{trial_id}/logs" if self.form == "trial" else f"/api/v1/tasks/{task_id}/logs"
        async with client.stream("GET", path, params={"follow": True}) as answer:
            answer.raise_for_status()
            async for line in answer.aiter_lines():
                result = json.loads(line)["result"]
                self._add(int(result["id"]), result["log"].removesuffix("\n"))

    async def _follow_pages(self, client: httpx.AsyncClient, trial_id: int, last: str) -> None:
        """Follows as the web page does: an event announces new lines, and a request fetches them."""
        async with client.stream("GET", "/detent/stream") as events:
            events.raise_for_status()
            async for _ in events.aiter_lines():
                while await self._page(client, trial_id):
                    pass
                if self.texts and self.texts[-1] == last:
                    return

    async def _page(self, client: httpx.AsyncClient, trial_id: int) -> bool:
        """Reads the lines after the newest one. Returns True if there may be more."""
        query = {"after": self.ids[-1] if self.ids else 0, "limit": 500}
        answer = await client.get(f"/detent/trials/{trial_id}/logs", params=query)
        answer.raise_for_status()
        page = answer.json()
        for line in page["lines"]:
            self._add(line["id"], line["text"])
        return not page["atEnd"]

    def _add(self, line_id: int, text: str) -> None:
        self.ids.append(line_id)
        self.texts.append(text)


@contextlib.asynccontextmanager
async def stalled(port: int, paths: list[str], headers: Mapping[str, str]) -> AsyncIterator[None]:
    """Opens a connection for each path and stops reading after the answer has begun."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    try:
        for path in paths:
            sock = socket.create_connection(("127.0.0.1", port))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=sock, limit=64)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n{head}\r\n".encode())
            connections.append((reader, writer))
        for reader, _ in connections:
            assert b"200" in await reader.readexactly(15)
        yield
    finally:
        for _, writer in connections:
            writer.close()
