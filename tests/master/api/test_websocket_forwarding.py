"""Websockets to ports of tasks, before the task has answered."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock

from starlette.types import Message
from starlette.websockets import WebSocket

from determined_master.api.proxy.websocket_forwarding import WebSocketForwarding
from determined_master.proxy.task_port import TaskPort


async def test_a_visitor_who_leaves_before_the_task_answers_ends_the_forwarding():
    messages: asyncio.Queue[Message] = asyncio.Queue()
    sent: list[Message] = []
    connection: Any = AsyncMock()
    asked = asyncio.Event()

    async def never() -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return b""

    async def send(message: Message) -> None:
        sent.append(message)

    connection.read = never
    scope = {"type": "websocket", "scheme": "ws", "path": "/", "query_string": b"", "headers": [], "subprotocols": []}
    messages.put_nowait({"type": "websocket.connect"})
    forwarding = WebSocketForwarding(TaskPort("1.a", 8888), connection)
    async with asyncio.timeout(5):
        passing = asyncio.create_task(forwarding.pass_on(WebSocket(scope, messages.get, send), "/"))
        await asked.wait()
        messages.put_nowait({"type": "websocket.disconnect", "code": 1006})
        await passing
    assert [each["type"] for each in sent] == ["websocket.close"]
