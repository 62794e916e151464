"""Fills a new database bypassing the API, which would take hours, and sends requests to the app over it."""

import asyncio
import json
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx

from determined_master.auth.passwords import client_hash
from determined_master.server.app import create_app
from determined_master.server.lifespan import lifespan
from determined_master.settings.settings import Settings
from determined_master.wiring.services import Services, build

PASSWORD = "Long-Enough-7"
"""Password of the user ``admin``."""
START = 1_700_000_000_000_000
_CONFIG = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}, "hyperparameters": {}}


def with_users(folder: Path) -> None:
    """Creates the newest tables, with ``admin`` and PASSWORD."""
    master = build(settings(folder))

    async def first_rows() -> None:
        await master.users.ensure_first(PASSWORD)
        await master.database.close()

    asyncio.run(first_rows())


def settings(folder: Path) -> Settings:
    return Settings(data=folder, initial_user_password=PASSWORD)


def experiment(connection: sqlite3.Connection, name: str, metric: str) -> int:
    insert(connection, "jobs", id=name, pool="default", priority=42, weight=1.0, position=START)
    return insert(
        connection,
        "experiments",
        job_id=name,
        name=name,
        description="",
        notes="",
        labels="[]",
        state="COMPLETED",
        config=json.dumps(_CONFIG),
        original_config=f"name: {name}\n",
        context_size=0,
        user_id=_first_of(connection, "users"),
        project_id=_first_of(connection, "projects"),
        archived=0,
        progress=1.0,
        start_time=START,
        end_time=START,
        pool="default",
        searcher_type="random",
        searcher_metric=metric,
        smaller_is_better=1,
        searcher_snapshot="{}",
        searcher_cursor=0,
    )


def trial(connection: sqlite3.Connection, experiment_id: int, number: int, **values: object) -> int:
    """Inserts an ended trial and returns its id."""
    defaults: dict[str, object] = {
        "request_id": str(number),
        "task_id": f"{experiment_id}.{number}",
        "state": "COMPLETED",
        "hparams": "{}",
        "seed": number,
        "restarts": 0,
        "system_failures": 0,
        "run_id": 1,
        "run_start_steps": 0,
        "reported_run_id": 1,
        "closed": 1,
        "start_time": START,
        "end_time": START,
        "steps_completed": 0,
        "progress": 1.0,
        "runner_state": "",
        "invalid_hp": 0,
        "checkpoint_count": 0,
        "checkpoint_size": 0,
        "summary_metrics": "{}",
        "run_metadata": "{}",
    }
    _task(connection, experiment_id, str(defaults["task_id"]))
    return insert(connection, "trials", experiment_id=experiment_id, **(defaults | values))


def _task(connection: sqlite3.Connection, experiment_id: int, task_id: str) -> None:
    owner = connection.execute("SELECT job_id, user_id FROM experiments WHERE id = ?", [experiment_id])
    job_id, user_id = owner.fetchone()
    insert(
        connection,
        "tasks",
        id=task_id,
        kind="TRIAL",
        job_id=job_id,
        user_id=user_id,
        experiment_id=experiment_id,
        token_scope="trial",
        created_at=START,
    )


def insert(connection: sqlite3.Connection, table: str, **values: object) -> int:
    names = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("?" * len(values))
    cursor = connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))
    return int(cursor.lastrowid or 0)


@contextmanager
def database(folder: Path) -> Iterator[sqlite3.Connection]:
    """Yields a transaction on a new database with its first user. It is not synced, so a crash of the machine would
    lose it."""
    with_users(folder)
    connection = sqlite3.connect(folder / "master.sqlite")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=-200000")
    with connection:
        yield connection
    connection.close()


@asynccontextmanager
async def app_over(folder: Path) -> AsyncIterator[tuple[Services, httpx.AsyncClient]]:
    """Yields the whole app over the folder, in this process, and a client that is signed in."""
    master = build(settings(folder))
    app = create_app(master)
    async with lifespan(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://master", timeout=120) as client:
            await log_in(client)
            yield master, client


def main(arguments: list[str], fill: Callable[..., None], measure: Callable[[Path], Coroutine[Any, Any, None]]) -> None:
    """Takes FOLDER and numbers for ``fill``, which is skipped if the folder already has a database."""
    folder = Path(arguments[0])
    if not (folder / "master.sqlite").exists():
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        fill(folder, *map(int, arguments[1:]))
        print(f"filled in {time.perf_counter() - start:.0f} s")
    asyncio.run(measure(folder))


async def log_in(client: httpx.AsyncClient) -> None:
    login = {"username": "admin", "password": client_hash(PASSWORD), "isHashed": True}
    answer = (await client.post("/api/v1/auth/login", json=login)).raise_for_status()
    client.cookies.clear()  # a request with cookies must come from the page
    client.headers["Authorization"] = f"Bearer {answer.json()['token']}"


async def measured(name: str, ask: Callable[[], Awaitable[httpx.Response]], rounds: int) -> float:
    """Returns the median of the seconds. Prints it with the longest time for which the event loop was blocked."""
    took, size = [], 0
    blocked = asyncio.ensure_future(_longest_block())
    for _ in range(rounds):
        start = time.perf_counter()
        answer = await ask()
        took.append(time.perf_counter() - start)
        answer.raise_for_status()
        size = len(answer.content)
    blocked.cancel()
    longest_block = await blocked
    print(
        f"{name:<24} {statistics.median(took) * 1000:7.1f} ms [{min(took) * 1000:.1f}..{max(took) * 1000:.1f}]"
        f"  {size:,} bytes; the loop was blocked for {longest_block * 1000:.1f} ms at most"
    )
    return statistics.median(took)


async def _longest_block() -> float:
    most = 0.0
    try:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            most = max(most, time.perf_counter() - start - 0.001)
    except asyncio.CancelledError:
        return most


def _first_of(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT min(id) FROM {table}").fetchone()[0])
