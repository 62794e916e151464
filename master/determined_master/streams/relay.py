"""Carries the messages of a stream between its websockets, unread, each only as fast as the other side takes them."""

import asyncio
import contextlib

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from determined.streams.records import MAX_RECORD_BYTES, is_final

GOING_AWAY = 1012
"""The other end of the stream is gone; its session may be continued by another stream."""
TOO_LARGE = 1009


async def relay(client: WebSocket, agent: WebSocket) -> None:
    """Returns when one side has ended, after closing the other: normally if that one did, else as cut."""
    directions = {
        asyncio.create_task(_carry(client, agent)): agent,
        asyncio.create_task(_carry(agent, client)): client,
    }
    try:
        done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await close(directions[task], *task.result())
    finally:
        for task in directions:
            task.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def _carry(source: WebSocket, target: WebSocket) -> tuple[int, str]:
    """Carries messages until the source ends. Returns code and reason with which the target is to be closed."""
    while True:
        try:
            message = await source.receive_bytes()
        except WebSocketDisconnect as end:
            return (end.code, end.reason or "") if is_final(end.code) else (GOING_AWAY, "")
        except (KeyError, RuntimeError):
            return GOING_AWAY, ""
        if len(message) > MAX_RECORD_BYTES:
            await close(source, TOO_LARGE)
            return GOING_AWAY, ""
        try:
            await target.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError):
            await close(source, GOING_AWAY)
            return GOING_AWAY, ""


async def close(socket: WebSocket, code: int, reason: str = "") -> None:
    """Closes a socket that may be closed already."""
    if socket.application_state is WebSocketState.CONNECTED:
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(code, reason)
