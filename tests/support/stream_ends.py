"""Both ends of a stream over ASGI: what a client and an agent send and get. The test writes their messages."""

import asyncio
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.support.agent_socket import AgentSocket, agent_socket
from tests.support.cluster import CONFIG, Cluster

from determined.link.messages import OpenStream, ReportedState
from determined.states import ContainerState
from determined.streams.records import SUBPROTOCOL


class End:
    """One end of a stream, over ASGI."""

    def __init__(self) -> None:
        self.to_master: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.from_master: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()

    def send(self, data: bytes) -> None:
        self.to_master.put_nowait({"type": "websocket.receive", "bytes": data})

    def close(self, code: int, reason: str = "") -> None:
        self.to_master.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})

    async def next(self) -> MutableMapping[str, Any]:
        async with asyncio.timeout(30):
            return await self.from_master.get()

    async def received(self) -> Any:
        """Returns the next bytes, or code and reason of the close."""
        message = await self.next()
        if message["type"] == "websocket.close":
            return message.get("code"), message.get("reason") or ""
        return message["bytes"]


@asynccontextmanager
async def end_of(cluster: Cluster, stream_id: str, key: str, *, token: str = "") -> AsyncIterator[End]:
    async with socket_at(cluster, f"/detent/streams/{stream_id}", [SUBPROTOCOL, key] if key else [], token) as end:
        yield end


@asynccontextmanager
async def socket_at(
    cluster: Cluster,
    path: str,
    subprotocols: Sequence[str] = (),
    token: str = "",
    *,
    cookie: str = "",
    address: str = "127.0.0.1",
) -> AsyncIterator[End]:
    """Yields the client's end of a websocket at a path."""
    end = End()
    headers = {"authorization": f"Bearer {token}" if token else "", "cookie": cookie}
    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
        "subprotocols": list(subprotocols),
        "extensions": {"websocket.http.response": {}},
        "server": ("127.0.0.1", 1),
        "client": (address, 2),
    }
    end.to_master.put_nowait({"type": "websocket.connect"})
    serving = asyncio.create_task(cluster.app(scope, end.to_master.get, end.from_master.put))
    try:
        yield end
    finally:
        end.close(1006)
        async with asyncio.timeout(30):
            await serving


class Running:
    """A trial that runs on an agent whose link the test holds."""

    def __init__(self, cluster: Cluster, link: AgentSocket, container_id: str, allocation_id: str) -> None:
        self.cluster, self.link, self.container_id, self.allocation_id = cluster, link, container_id, allocation_id
        self.task_id = allocation_id.rpartition(".")[0]

    @property
    def path(self) -> str:
        return f"/detent/tasks/{self.task_id}/streams"

    async def open(self, **body: Any) -> tuple[dict[str, Any], OpenStream]:
        """Returns the answer to a client, and what the agent was sent."""
        answer = await self.cluster.post(self.path, body or {"argv": ["true"]})
        assert answer.status_code == 200, answer.text
        return answer.json(), await self.asked()

    async def asked(self) -> OpenStream:
        """Returns the next stream that the agent is asked for."""
        while (message := await self.link.answer())["kind"] != "open_stream":
            pass
        return OpenStream.model_validate(message)


@asynccontextmanager
async def running(
    cluster: Cluster, config: str = CONFIG, *, is_shell: bool = False, **hello: Any
) -> AsyncIterator[Running]:
    agent = await cluster.join("one")
    if is_shell:
        answer = await cluster.post("/api/v1/shells", {"config": {"resources": {"slots": 0}}})
        assert answer.status_code == 200, answer.text
    else:
        await cluster.create(config)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    report = agent.report_of(desired, ContainerState.RUNNING)
    async with agent_socket(cluster, "one", containers=[report], **{"takes_streams": True} | hello) as link:
        assert (await link.answer())["kind"] == "welcome"
        link.send(ReportedState(containers=[report]).model_dump_json())
        yield Running(cluster, link, desired.container_id, desired.allocation_id)
