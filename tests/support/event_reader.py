"""Reads a page's event stream from a real server, as a browser does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass
class Reader:
    """The events of one stream. ``events``: their names and data, in order; ``ids``: their ids."""

    status: int
    headers: httpx.Headers
    events: list[tuple[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    grown: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, kind: str, **wanted: Any) -> Any:
        """Returns the data of the first event of this name that has all fields of ``wanted``."""

        def match() -> Any:
            return next((d for k, d in self.events if k == kind and wanted.items() <= d.items()), None)

        async with asyncio.timeout(20), self.grown:
            await self.grown.wait_for(match)
        return match()

    async def change(self, kind: str, name: object = "") -> None:
        """Waits for this change."""
        async with asyncio.timeout(20), self.grown:
            await self.grown.wait_for(lambda: {"kind": kind, "id": str(name)} in self.changes)

    @property
    def changes(self) -> list[dict[str, str]]:
        return [change for kind, data in self.events if kind == "change" for change in data["changes"]]

    async def read(self, answer: httpx.Response) -> None:
        fields: dict[str, str] = {}
        try:
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "event" in fields:
                    async with self.grown:
                        self.events.append((fields["event"], json.loads(fields["data"])))
                        self.ids.append(fields["id"])
                        self.grown.notify_all()
                    fields = {}
        except httpx.HTTPError:
            pass
        finally:
            self.ended.set()


@asynccontextmanager
async def reading(url: str, token: str, query: str = "", **headers: str) -> AsyncIterator[Reader]:
    """Yields a reader of the stream, which is open inside the block."""
    all_headers = {"Authorization": f"Bearer {token}", **headers}
    async with httpx.AsyncClient(timeout=90) as client:
        async with client.stream("GET", f"{url}/detent/stream{query}", headers=all_headers) as answer:
            reader = Reader(answer.status_code, answer.headers)
            task = asyncio.create_task(reader.read(answer))
            try:
                yield reader
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
