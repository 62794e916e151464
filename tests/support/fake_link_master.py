"""A fake master for an agent: the websocket, contexts and output, on a real server on localhost."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from determined.link.messages import (
    AGENT_MESSAGE,
    DesiredContainer,
    DesiredState,
    Hello,
    OutputBatch,
    OutputLine,
    Refuse,
    ReportedContainer,
    ReportedState,
    Welcome,
)

TOKEN = "join-token"


class FakeLinkMaster:
    """Sends the messages that a test sets, and records all messages of agents."""

    def __init__(self) -> None:
        self.epoch = 1
        self.heartbeat_seconds = 0.2
        self.cluster_id = "cluster"
        self.refuse: Refuse | None = None
        self.takes_last_output = False
        self.storage_folders: list[str] = []
        self.data_folder = ""
        self.stores_last_output = True
        """False: answers that none of it is stored."""
        self.stored_output: dict[str, int] = {}
        """Answers that are sent with the next desired state."""
        self.posts = 0
        self.desired: dict[str, DesiredContainer] = {}
        self.sequence = 0
        self.hellos: list[Hello] = []
        self.reports: list[ReportedState] = []
        self.lines: dict[str, list[OutputLine]] = {}
        self.arrivals: list[tuple[float, OutputLine]] = []
        self.committed: dict[str, int] = {}
        self.contexts: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.drop_answers = 0
        """Number of output posts to commit without an answer."""
        self.refuse_posts = 0
        """Number of output posts neither to commit nor to answer."""
        self._links: set[WebSocket] = set()

    def report_of(self, container_id: str) -> ReportedContainer | None:
        for container in self.reports[-1].containers if self.reports else ():
            if container.container_id == container_id:
                return container
        return None

    def text_of(self, container_id: str, source: str = "task") -> list[str]:
        return [line.log for line in self.lines.get(container_id, ()) if line.source == source]

    async def set_desired(self, *containers: DesiredContainer) -> None:
        """Replaces the desired containers and sends them."""
        self.desired = {container.container_id: container for container in containers}
        self.sequence += 1
        for link in set(self._links):
            await self._send_desired(link)

    async def cut(self) -> None:
        """Closes every link."""
        for link in set(self._links):
            await link.close()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                WebSocketRoute("/agents", self._agents),
                Route("/detent/contexts/{hash}", self._context),
                Route("/detent/agents/{id}/output", self._output, methods=["POST"]),
                Route("/api/v1/allocations/{id}/resources/{rid}/rendezvous", self._rendezvous),
            ]
        )

    async def _send_desired(self, link: WebSocket) -> None:
        desired = DesiredState(
            master_epoch=self.epoch,
            sequence=self.sequence,
            containers=list(self.desired.values()),
            stored_output=self.stored_output,
        )
        self.stored_output = {}
        await link.send_text(desired.model_dump_json())

    async def _agents(self, link: WebSocket) -> None:
        if link.headers.get("authorization") != f"Bearer {TOKEN}":
            await link.close()
            return
        await link.accept()
        try:
            hello = AGENT_MESSAGE.validate_json(await link.receive_text())
            assert isinstance(hello, Hello)
            self.hellos.append(hello)
            if self.refuse is not None:
                await link.send_text(self.refuse.model_dump_json())
                await link.close()
                return
            welcome = Welcome(
                master_epoch=self.epoch,
                cluster_id=self.cluster_id,
                heartbeat_seconds=self.heartbeat_seconds,
                takes_last_output=self.takes_last_output,
                storage_folders=self.storage_folders,
                data_folder=self.data_folder,
            )
            await link.send_text(welcome.model_dump_json())
            self._links.add(link)
            await self._send_desired(link)
            while True:
                message = AGENT_MESSAGE.validate_json(await link.receive_text())
                assert isinstance(message, ReportedState)
                self.reports.append(message)
                for batch in message.last_output:
                    end = self._keep(batch) if self.stores_last_output else self.committed.get(batch.container_id, 0)
                    self.stored_output[batch.container_id] = end
        except WebSocketDisconnect:
            pass
        finally:
            self._links.discard(link)

    async def _context(self, request: Request) -> Response:
        name = request.path_params["hash"]
        self.fetched.append(name)
        data = self.contexts.get(name)
        return Response(status_code=404) if data is None else Response(data)

    async def _rendezvous(self, request: Request) -> Response:
        return JSONResponse({"rendezvousInfo": {"addresses": ["127.0.0.1"], "rank": 0, "slots": [1]}})

    async def _output(self, request: Request) -> Response:
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        batch = OutputBatch.model_validate_json(await request.body())
        self.posts += 1
        if self.refuse_posts > 0:
            self.refuse_posts -= 1
            return JSONResponse({}, status_code=503)
        committed = self._keep(batch)
        if self.drop_answers > 0:
            self.drop_answers -= 1
            return JSONResponse({}, status_code=503)
        return JSONResponse({"committed": committed})

    def _keep(self, batch: OutputBatch) -> int:
        committed = self.committed.get(batch.container_id, 0)
        if batch.start == committed:
            self.lines.setdefault(batch.container_id, []).extend(batch.lines)
            self.arrivals += [(time.time(), line) for line in batch.lines]
            committed = self.committed[batch.container_id] = batch.end
        return committed


@asynccontextmanager
async def serving(app: Any, port: int = 0, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Serves an app on an address of this machine. Yields its URL."""
    with socket.create_server((host, port)) as listener:
        config = uvicorn.Config(app, log_level="warning", lifespan="off", ws="websockets-sansio", access_log=False)
        server = uvicorn.Server(config)
        serve = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            server.force_exit = True
            await serve
