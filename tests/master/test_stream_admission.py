"""Followers of streams that arrive at once leave room for other requests."""

import asyncio

from starlette.types import Receive, Scope, Send

from determined_master.api.stream_admission import StreamAdmission

FOLLOW = {"type": "http", "query_string": b"follow=true"}
PLAIN = {"type": "http", "query_string": b"limit=5"}


async def test_a_plain_request_of_several_steps_is_served_between_many_followers():
    served: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope is PLAIN:
            for _ in range(4):
                await asyncio.sleep(0)
        served.append(scope["query_string"])

    async def unused(*_: object) -> None:
        raise AssertionError("neither received nor sent")

    admission = StreamAdmission(app)
    async with asyncio.TaskGroup() as group:
        for scope in [*([FOLLOW] * 50), PLAIN]:
            group.create_task(admission(scope, unused, unused))
    assert served.index(b"limit=5") < 10
    assert served.count(b"follow=true") == 50
