"""Says hello to a master as an agent would, and returns what the master answers."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tests.support.cluster import Cluster

from determined.link.messages import Hello


async def say_hello(cluster: Cluster, hello: Hello, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    """Opens the agents' websocket with ``headers``, sends ``hello``, closes it, and returns the master's messages."""
    scope = {
        "type": "websocket",
        "path": "/agents",
        "raw_path": b"/agents",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "subprotocols": [],
        "scheme": "ws",
        "server": ("master", 80),
        "client": ("127.0.0.1", 1),
        "app": cluster.app,
    }
    received = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": hello.model_dump_json()},
        {"type": "websocket.disconnect", "code": 1000},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return received.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(10):
        await cluster.app(scope, receive, send)
    return [json.loads(message["text"]) for message in sent if "text" in message]
