"""Connects an agent's websocket to the app over ASGI. The test writes the agent's messages."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from tests.support.cluster import Cluster

from determined.link.messages import Hello, SlotFacts


class AgentSocket:
    def __init__(self) -> None:
        self.to_master: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.from_master: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()

    def send(self, text: str) -> None:
        self.to_master.put_nowait({"type": "websocket.receive", "text": text})

    def disconnect(self) -> None:
        self.to_master.put_nowait({"type": "websocket.disconnect", "code": 1000})

    async def answer(self) -> dict[str, Any]:
        """Returns the next message of the master. Returns ``{"closed": code}`` if the master closes the connection."""
        async with asyncio.timeout(60):
            while True:
                message = await self.from_master.get()
                if message["type"] == "websocket.send":
                    return dict(json.loads(message["text"]))
                if message["type"] == "websocket.close":
                    return {"closed": message["code"]}


@asynccontextmanager
async def agent_socket(
    cluster: Cluster, agent_id: str = "one", text: str = "", **hello: Any
) -> AsyncIterator[AgentSocket]:
    """Yields a connection that has sent a hello. ``text``: sends this text as the hello instead."""
    socket = AgentSocket()
    scope = {
        "type": "websocket",
        "path": "/agents",
        "raw_path": b"/agents",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {cluster.master.secrets.join_token}".encode())],
        "subprotocols": [],
        "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2),
    }
    socket.to_master.put_nowait({"type": "websocket.connect"})
    socket.send(text or Hello(**{"agent_id": agent_id, "slots": [SlotFacts(id=0)]} | hello).model_dump_json())
    serving = asyncio.create_task(cluster.app(scope, socket.to_master.get, socket.from_master.put))
    try:
        yield socket
    finally:
        socket.disconnect()
        await serving
