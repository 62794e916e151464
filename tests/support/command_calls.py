"""Launches and reads commands over the API."""

import base64
from typing import Any

from sqlalchemy import select
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer
from determined_master.db.models import LogRow

C = "/api/v1/commands"
ECHO = {"entrypoint": ["echo", "hello"]}
FILE = {"path": "run.py", "type": 48, "content": base64.b64encode(b"pass\n").decode(), "mode": 420, "mtime": "1"}


async def launch(cluster: Cluster, config: dict[str, Any] | None = None, **body: Any) -> str:
    answer = await cluster.post(C, {"config": ECHO if config is None else config, **body})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["command"]["id"])


async def get_command(cluster: Cluster, command: str) -> dict[str, Any]:
    return dict((await cluster.get(f"{C}/{command}"))["command"])


async def wait_for_state(cluster: Cluster, command: str, state: str) -> dict[str, Any]:
    async def reached() -> dict[str, Any] | None:
        found = await get_command(cluster, command)
        return found if found["state"] == f"STATE_{state}" else None

    return await eventually(reached)


async def attempt(agent: FakeAgent, command: str, run: int = 1) -> DesiredContainer:
    async def desired() -> DesiredContainer | None:
        return next((w for w in await agent.desired() if w.allocation_id == f"{command}.{run}"), None)

    return await eventually(desired)


async def log(cluster: Cluster, command: str) -> list[str]:
    async with cluster.master.database.read() as session:
        query = select(LogRow.log).where(LogRow.task_id == command).order_by(LogRow.id)
        return list(await session.scalars(query))
