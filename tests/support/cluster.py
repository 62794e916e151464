"""A master inside the test process: the real app, a real migrated database, and agents that the test plays."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from tests.support.compiled_statements import share_statements
from tests.support.emptied_databases import database_of
from tests.support.first_ticks import in_turn
from tests.support.new_database import new_database
from tests.support.postgresql import VARIABLE
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer, Hello, ReportedContainer, SlotFacts
from determined.states import ContainerState
from determined_master.allocations.desired_state import desired_containers
from determined_master.auth.passwords import client_hash
from determined_master.clock import Clock
from determined_master.loops.loop import TICK
from determined_master.server.app import create_app
from determined_master.server.lifespan import lifespan
from determined_master.settings.settings import Settings
from determined_master.wiring.services import Services, build

PASSWORD = "Correct-Horse-7"
CONFIG = """
name: tiny
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
hyperparameters: {}
"""
_templates: "list[_Template]" = []


@dataclass(frozen=True)
class _Template:
    """A database with its first rows and a session of ``admin``. It is built once and copied for each test."""

    database: Path
    token: str


@dataclass
class Cluster:
    """A master with a client that is logged in as admin."""

    master: Services
    app: FastAPI
    client: httpx.AsyncClient

    async def create(self, config: str = CONFIG, **extra: Any) -> int:
        answer = await self.client.post("/api/v1/experiments", json={"config": config, "activate": True, **extra})
        assert answer.status_code == 200, answer.text
        return int(answer.json()["experiment"]["id"])

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers=headers)

    async def state(self, experiment_id: int) -> str:
        return str((await self.get(f"/api/v1/experiments/{experiment_id}"))["experiment"]["state"])

    async def join(self, agent_id: str = "one", slots: int = 1, pool: str = "default") -> "FakeAgent":
        await self.master.agents.welcome(
            Hello(agent_id=agent_id, pool=pool, slots=[SlotFacts(id=i) for i in range(slots)])
        )
        return FakeAgent(self, agent_id)

    def as_task(self, allocation_id: str) -> dict[str, str]:
        """Returns the headers of a task of this allocation."""
        return {
            "Authorization": "",
            "Grpc-Metadata-x-allocation-token": f"Bearer {self.master.secrets.task_token(allocation_id)}",
        }


@dataclass
class FakeAgent:
    """Sends the reports of an agent without running anything."""

    cluster: Cluster
    id: str
    address: str = "127.0.0.1"

    async def desired(self) -> list[DesiredContainer]:
        master = self.cluster.master
        return await desired_containers(master.database, master.secrets, master.identity.cluster_id, self.id)

    async def wait_for_desired(self, count: int = 1) -> list[DesiredContainer]:
        """Waits until at least ``count`` containers are desired."""

        async def enough() -> list[DesiredContainer] | None:
            containers = await self.desired()
            return containers if len(containers) >= count else None

        return await eventually(enough)

    def report_of(
        self, desired: DesiredContainer, state: ContainerState, exit_: ContainerExit | None = None
    ) -> ReportedContainer:
        return ReportedContainer(
            container_id=desired.container_id,
            allocation_id=desired.allocation_id,
            state=state,
            address=self.address,
            exit=exit_,
            output_done=exit_ is not None,
        )

    async def send_report(
        self, desired: DesiredContainer, state: ContainerState, exit_: ContainerExit | None = None
    ) -> None:
        await self.cluster.master.agents.on_report(self.id, [self.report_of(desired, state, exit_)])

    async def run(self, desired: DesiredContainer) -> None:
        """Reports the container as running and completes its rendezvous."""
        await self.send_report(desired, ContainerState.RUNNING)
        answer = await self.cluster.client.get(
            f"/api/v1/allocations/{desired.allocation_id}/resources/{desired.container_id}/rendezvous"
        )
        assert answer.status_code == 200, answer.text

    async def exit(self, desired: DesiredContainer, code: int = 0) -> None:
        await self.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))


@asynccontextmanager
async def open_cluster(folder: Path, clock: Clock | None = None, **settings: Any) -> AsyncIterator[Cluster]:
    """Yields a master over a copy of a migrated database, with a client that is logged in as ``admin``."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    is_usual = clock is None and "initial_user_password" not in settings
    # Never the page that this checkout may have built: unknown addresses must answer 404.
    values = {"data": data, "initial_user_password": PASSWORD, "webui": folder / "no-page", **settings}
    if (server := os.environ.get(VARIABLE)) and "database_url" not in settings:
        with database_of(data, server) as url:
            async with open_cluster(folder, clock, **settings, database_url=url) as cluster:
                yield cluster
        return
    is_new = "database_url" not in values and not (data / "master.sqlite").exists()
    template = _templates[0] if is_new and is_usual and _templates else None
    if template is not None:
        shutil.copy(template.database, data / "master.sqlite")
    elif is_new:
        (data / "master.sqlite").write_bytes(new_database())
    master = build(Settings(**values), clock)
    share_statements(master.database)
    app = create_app(master)
    async with AsyncExitStack() as stack:
        with in_turn():
            await stack.enter_async_context(lifespan(app))
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url="http://master"))
        token = await login(client, "admin", template.token if template else "")
        if is_new and is_usual and not _templates:
            _templates.append(_Template(_copied(data / "master.sqlite", folder.parent / "template.sqlite"), token))
        await _first_ticks_are_over()
        yield Cluster(master, app, client)


async def _first_ticks_are_over() -> None:
    """Waits for the first tick of each loop: otherwise a loop may or may not see the rows that a test adds."""
    await asyncio.sleep(0)  # the loops begin
    ticks = [task for task in asyncio.all_tasks() if task.get_name().startswith(TICK)]
    if ticks:
        await asyncio.wait(ticks)


def _copied(database: Path, copy: Path) -> Path:
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


async def login(client: httpx.AsyncClient, username: str, token: str = "") -> str:
    """Logs the client in and returns the token of its session: a new session, or the one of ``token``."""
    if not token:
        body = {"username": username, "password": client_hash(PASSWORD), "isHashed": True}
        answer = await client.post("/api/v1/auth/login", json=body)
        assert answer.status_code == 200, answer.text
        client.cookies.clear()
        token = str(answer.json()["token"])
    client.headers["Authorization"] = f"Bearer {token}"
    return token
