"""Hundreds of submissions at once by several users: each answered one is stored once, and others are served meanwhile."""

import asyncio
import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from tests.support.latency import health_of, measured
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.seeded_cluster import FILE

pytestmark = pytest.mark.budget(15, "submits from many clients at once")

USERS = 5
LARGE_EVERY = 50
"""One of so many configurations is large enough to be parsed in another process."""
BUSY = (429, 503)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path / "cluster", slots=0) as created:
        yield created


@dataclass
class Burst:
    """Counts of answers by status, and the answered ids by the name of the experiment."""

    statuses: Counter[int] = field(default_factory=Counter)
    ids: dict[str, int] = field(default_factory=dict)

    async def submit(self, client: httpx.AsyncClient, token: str, number: int) -> None:
        name = f"burst {number}"
        answer = await client.post(
            "/api/v1/experiments", json=body_of(number, name), headers={"Authorization": f"Bearer {token}"}
        )
        self.statuses[answer.status_code] += 1
        if answer.is_success:
            self.ids[name] = int(answer.json()["experiment"]["id"])
        else:
            assert answer.status_code in BUSY, answer.text
            assert answer.headers["retry-after"]


def body_of(number: int, name: str) -> dict[str, object]:
    """Returns the body of a submission. Some are active, some have a context, and some are large."""
    config: dict[str, object] = {"name": name, "entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}}
    if number % LARGE_EVERY == 0:
        config["description"] = "d" * 100_000
    body: dict[str, object] = {"config": json.dumps(config), "activate": number % 2 == 0}
    if number % 3 == 0:
        body["modelDefinition"] = [FILE]
    return body


def tokens_of_users(cluster: LiveCluster) -> list[str]:
    tokens = []
    for number in range(USERS):
        user = {"username": f"user-{number}", "active": True}
        cluster.session.post("/api/v1/users", {"user": user, "password": "Correct-Horse-7"})
        login = {"username": f"user-{number}", "password": "Correct-Horse-7"}
        tokens.append(cluster.session.post("/api/v1/auth/login", login)["token"])
    return tokens


def stored(cluster: LiveCluster) -> list[tuple[int, str, str]]:
    query = "SELECT experiments.id, name, username FROM experiments JOIN users ON users.id = user_id ORDER BY name"
    with contextlib.closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.long)], ids=["sample", "all"])
async def test_each_answered_submission_is_stored_once(cluster: LiveCluster, count: int):
    """``/health`` is answered meanwhile; its median is below a twentieth of the time of the burst."""
    tokens = await asyncio.to_thread(tokens_of_users, cluster)
    burst = Burst()
    limits = httpx.Limits(max_connections=None)
    began = asyncio.get_running_loop().time()
    async with httpx.AsyncClient(base_url=cluster.url, timeout=240, limits=limits) as client:
        with measured(health_of(cluster.port)) as health:
            await asyncio.gather(*(burst.submit(client, tokens[n % USERS], n) for n in range(count)))
    took = asyncio.get_running_loop().time() - began
    rows = await asyncio.to_thread(stored, cluster)
    print(
        f"{count} submissions by {USERS} users in {took:.1f} s: {dict(burst.statuses)}; "
        f"/health {len(health.seconds)} times, {health.median * 1000:.0f} ms in the median, longest {health.longest:.2f} s"
    )
    assert sum(burst.statuses.values()) == count
    assert {name: row_id for row_id, name, _ in rows} == burst.ids
    assert len(rows) == len(burst.ids)
    assert {name: user for _, name, user in rows} == {
        name: f"user-{int(name.split()[1]) % USERS}" for name in burst.ids
    }
    assert burst.statuses[200] >= count / 2
    assert health.failures == []
    assert health.median < took / 20
