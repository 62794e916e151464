"""Websockets of visitors to a task that does not answer."""

import asyncio
from typing import Any, cast

import pytest
from starlette.websockets import WebSocket

from determined_master.api.proxy import websocket_forwarding as module
from determined_master.api.proxy.websocket_forwarding import Refused, WebSocketForwarding
from determined_master.proxy.task_port import TaskPort


class SilentTask:
    """A connection to a server that reads and says nothing."""

    async def read(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def write(self, data: bytes) -> None:
        pass


async def test_a_task_that_does_not_answer_a_handshake_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.01)
    scope: dict[str, Any] = {"type": "websocket", "scheme": "ws", "headers": [], "client": None, "subprotocols": []}
    socket = WebSocket(scope, cast(Any, None), cast(Any, None))
    forwarding = WebSocketForwarding(TaskPort("t", 8888), cast(Any, SilentTask()))
    with pytest.raises(Refused, match=r"port 8888 of task t has not answered within 0\.01 s"):
        await asyncio.wait_for(forwarding.pass_on(socket, "/"), 5)
