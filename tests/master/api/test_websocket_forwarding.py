"""Websockets to ports of tasks, before the task has answered."""

import asyncio
from typing import Any, cast

import pytest
from starlette.types import Message
from starlette.websockets import WebSocket

from determined_master.api.proxy import websocket_forwarding as module
from determined_master.api.proxy.websocket_forwarding import Refused, WebSocketForwarding
from determined_master.proxy.task_port import TaskPort


class SlowTask:
    """A connection to a server that takes a handshake, and sends one byte of its answer again and again, or nothing."""

    def __init__(self, *, sends: bool) -> None:
        self.asked = asyncio.Event()
        self._sends = sends

    async def read(self) -> bytes:
        self.asked.set()
        if not self._sends:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return b"H"

    async def write(self, data: bytes) -> None:
        pass


class Visitor:
    """A visitor of a page: what it sends, and what it is sent."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self.messages.put_nowait({"type": "websocket.connect"})
        self.answers: list[str] = []

    def socket(self) -> WebSocket:
        scope: dict[str, Any] = {"type": "websocket", "scheme": "ws", "headers": [], "client": None, "subprotocols": []}

        async def send(message: Message) -> None:
            self.answers.append(message["type"])

        return WebSocket(scope, self.messages.get, send)


def forwarding(task: SlowTask) -> WebSocketForwarding:
    return WebSocketForwarding(TaskPort("1.a", 8888), cast(Any, task))


@pytest.mark.parametrize("sends", [False, True])
async def test_a_task_that_does_not_answer_a_handshake_is_given_up(monkeypatch: pytest.MonkeyPatch, sends: bool):
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.01)
    async with asyncio.timeout(5):
        with pytest.raises(Refused, match=r"port 8888 of task 1\.a has not answered within 0\.01 s"):
            await forwarding(SlowTask(sends=sends)).pass_on(Visitor().socket(), "/")


async def test_a_visitor_who_leaves_before_the_task_answers_ends_the_forwarding():
    visitor, task = Visitor(), SlowTask(sends=False)
    async with asyncio.timeout(5):
        passing = asyncio.create_task(forwarding(task).pass_on(visitor.socket(), "/"))
        await task.asked.wait()
        visitor.messages.put_nowait({"type": "websocket.disconnect", "code": 1006})
        await passing
    assert visitor.answers == ["websocket.close"]
