"""A cluster with a victim, and callers that must not reach the objects of the victim."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from sqlalchemy import update
from tests.support.cluster import PASSWORD, Cluster, login
from tests.support.columns import update_columns
from tests.support.seeded_cluster import SeededObjects, seed_cluster

from determined_master.db.models import CheckpointRow, SessionRow

VICTIM = "ada"


@dataclass
class Callers:
    """Headers by caller. ``victim`` owns everything in ``seeded``."""

    seeded: SeededObjects
    user_id: int
    headers: Mapping[str, Mapping[str, str]]

    def path(self, template: str) -> str:
        return template.format_map(
            {
                "experiment_id": self.seeded.experiment,
                "trial_id": self.seeded.trial,
                "task_id": self.seeded.task,
                "allocation_id": self.seeded.allocation,
                "resources_id": self.seeded.container,
                "uuid": self.seeded.checkpoint,
                "command_id": self.seeded.command,
                "shell_id": self.seeded.shell,
                "agent_id": self.seeded.agent,
                "slot_id": 0,
                "user_id": self.user_id,
                "username": VICTIM,
                "project_id": 1,
                "workspace_id": 1,
                "label": "taken",
                "line_id": 1,
                "digest": "0" * 64,
                "kind": "jobs",
            }
        )


async def callers(cluster: Cluster) -> Callers:
    """Returns the callers. The victim has two running trials, and the client ends logged in as the victim."""
    answer = await cluster.post("/api/v1/users", {"user": {"username": VICTIM}, "password": PASSWORD})
    user_id = answer.json()["user"]["id"]
    headers = {"no token": {"Authorization": ""}, "admin": {"Authorization": cluster.client.headers["Authorization"]}}
    headers["expired token"] = await _expired(cluster)
    headers["another user"] = await _logged_in(cluster.client, "determined")
    headers["victim"] = await _logged_in(cluster.client, VICTIM)
    seeded = await seed_cluster(cluster)
    await cluster.create()
    containers = await seeded.played_agent.wait_for_desired(2)
    other_container = next(desired for desired in containers if desired.allocation_id != seeded.allocation)
    async with cluster.master.database.write() as session:  # the row of a removal task of the victim
        theirs = update(CheckpointRow).where(CheckpointRow.uuid == seeded.checkpoint)
        await session.execute(theirs.values(removal_task_id=seeded.task))
    headers["another trial"] = cluster.as_task(other_container.allocation_id)
    headers["the trial"] = cluster.as_task(seeded.allocation)
    headers["join token"] = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    return Callers(seeded, user_id, headers)


async def _logged_in(client: httpx.AsyncClient, username: str) -> dict[str, str]:
    await login(client, username)
    return {"Authorization": client.headers["Authorization"]}


async def _expired(cluster: Cluster) -> dict[str, str]:
    headers = await _logged_in(cluster.client, VICTIM)
    async with cluster.master.database.write() as session:
        principal = await cluster.master.authenticator.principal({"authorization": headers["Authorization"]}, {})
        late = update(SessionRow).where(SessionRow.id == principal.session_id)
        await session.execute(late.values(expires_at=datetime(2020, 1, 1, tzinfo=UTC)))
    cluster.master.authenticator.forget_sessions()
    return headers


async def protected_rows(cluster: Cluster) -> dict[str, list[Any]]:
    """Returns the rows that only the victim, an agent or an admin may change, after the index has caught up."""
    await update_columns(cluster.master.indexer)
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    tables = sorted(names - {"sessions", "events", "user_settings", "sign_in_links", "alembic_version"})
    rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    connection.close()
    return rows
