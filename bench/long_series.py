"""Long curves: fills a fresh database with runs of one metric, and measures what drawing them costs the master.

``python -m bench.long_series FOLDER [RUNS [POINTS]]`` fills FOLDER/master.sqlite and asks for all of them at once.
"""

import asyncio
import json
import math
import random
import resource
import sqlite3
import statistics
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import httpx

from determined_master.app import create_app
from determined_master.lifespan import lifespan
from determined_master.master import build
from determined_master.metrics.packing import chunk_rows_of
from determined_master.metrics.points import Points
from determined_master.metrics.thinning import SIZE
from determined_master.passwords import client_hash
from determined_master.settings import Settings

PASSWORD = "Long-Series-7"
START = 1_700_000_000_000_000
CONFIG = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}, "hyperparameters": {}}


def fill(folder: Path, runs: int = 100, points: int = 100_000, *, metric: str = "loss", reports: bool = True) -> None:
    """One experiment of ``runs`` ended trials, each of ``points`` reports, packed as the master packs them. Without
    ``reports`` the packed points alone, in a tenth of the time; curves look the same."""
    _with_users(folder)
    connection = sqlite3.connect(folder / "master.sqlite")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=-200000")
    with connection:
        experiment = _experiment(connection, metric)
        for run in range(runs):
            _run(connection, experiment, run, points, metric, reports)
    connection.close()


def _run(connection: sqlite3.Connection, experiment: int, run: int, count: int, metric: str, reports: bool) -> None:
    state = {metric: {"type": "number", "count": count, "sum": 0.0, "mean": 0.5, "min": 0.0, "max": 3.0, "last": 0.1}}
    trial = _insert(
        connection,
        "trials",
        experiment_id=experiment,
        request_id=str(run),
        task_id=f"{experiment}.{run}",
        state="COMPLETED",
        hparams=json.dumps({"lr": 10 ** -(1 + run % 5), "width": 2 ** (run % 7)}),
        seed=run,
        restarts=0,
        system_failures=0,
        run_id=1,
        run_start_steps=0,
        reported_run_id=1,
        closed=1,
        start_time=START,
        end_time=START + count * 1_000_000,
        steps_completed=count,
        progress=1.0,
        runner_state="",
        invalid_hp=0,
        checkpoint_count=0,
        checkpoint_size=0,
        summary_metrics=json.dumps({"avg_metrics": state}),
        run_metadata="{}",
    )
    whole = _curve(run, count)
    first = last = 0
    if reports:
        first = 1 + (connection.execute("SELECT max(id) FROM metrics").fetchone()[0] or 0)
        connection.executemany(
            "INSERT INTO metrics VALUES (?, ?, 1, 'training', ?, ?, ?, NULL, 0, NULL)",
            _rows(trial, first, whole, metric),
        )
        last = first + count - 1
    series = _insert(connection, "series", trial_id=trial, group="training", name=metric, points=count, packed_id=last)
    for start in range(0, count, SIZE):
        part = whole.part(start, start + SIZE)
        ids = range(first + start, first + start + len(part)) if reports else range(len(part))
        for row in chunk_rows_of(part, start // SIZE, ids):
            _insert(connection, "series_chunks", series_id=series, **row)
    _insert(
        connection,
        "series_cursors",
        trial_id=trial,
        packed_id=last,
        packed_run=1,
        reached_id=last,
        version=0,
        done_run=1,
    )


def _curve(run: int, count: int) -> Points:
    """A loss that falls, with noise, and one peak of which a drawing must not lose sight."""
    noise = random.Random(run)
    values = array("d", (math.exp(-4 * i / count) + 0.05 * noise.random() + run / 500 for i in range(count)))
    if count:
        values[noise.randrange(count)] = 3.0
    times = array("q", (START + i * 1_000_000 + noise.randrange(10_000) for i in range(count)))
    return Points(array("q", range(1, count + 1)), times, array("d", [math.nan]) * count, values)


def _rows(trial: int, first: int, points: Points, metric: str) -> Iterator[tuple[int, int, int, int, str]]:
    for i in range(len(points)):
        yield first + i, trial, points.batches[i], points.times[i], json.dumps({metric: points.values[i]})


def _experiment(connection: sqlite3.Connection, metric: str) -> int:
    return _insert(
        connection,
        "experiments",
        job_id="long-series",
        name="long series",
        description="",
        notes="",
        labels="[]",
        state="COMPLETED",
        config=json.dumps(CONFIG),
        original_config="name: long series\n",
        context_size=0,
        user_id=_first(connection, "users"),
        project_id=_first(connection, "projects"),
        archived=0,
        progress=1.0,
        start_time=START,
        end_time=START,
        pool="default",
        priority=42,
        searcher_type="random",
        searcher_metric=metric,
        smaller_is_better=1,
        searcher_snapshot="{}",
        searcher_cursor=0,
    )


def _first(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT min(id) FROM {table}").fetchone()[0])


def _insert(connection: sqlite3.Connection, table: str, **values: object) -> int:
    names = ", ".join(f'"{name}"' for name in values)
    marks = ", ".join("?" * len(values))
    cursor = connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))
    return int(cursor.lastrowid or 0)


def _with_users(folder: Path) -> None:
    """The newest tables; ``admin`` with PASSWORD."""
    master = build(_settings(folder))

    async def first_rows() -> None:
        await master.users.ensure_first(PASSWORD)
        await master.database.close()

    asyncio.run(first_rows())


def _settings(folder: Path) -> Settings:
    return Settings(data=folder, initial_user_password=PASSWORD)


async def measure(folder: Path, *, rounds: int = 5) -> None:
    """Prints the seconds of each question, through the whole app, and the longest that the event loop stood still."""
    app = create_app(build(_settings(folder)))
    async with lifespan(app):
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://master", timeout=120) as client:
            login = {"username": "admin", "password": client_hash(PASSWORD), "isHashed": True}
            await client.post("/api/v1/auth/login", json=login)
            names = (await client.get("/detent/experiments/1/metric-names")).json()["metrics"]
            metrics = [{key: names[0][key] for key in ("group", "name")}]
            trials = (await client.get("/api/v1/experiments/1")).json()["experiment"]["trialIds"][:100]
            asked = {
                "all, whole": {"trialIds": trials},
                "all, a tenth": {"trialIds": trials, "start": 1001, "end": names[0]["count"] / len(trials) / 10 + 1000},
                "all, by time": {"trialIds": trials, "x": "time"},
                "one, whole": {"trialIds": trials[:1]},
                "one, 5000 points": {"trialIds": trials[:1], "maxPoints": 5000},
            }
            for name, body in asked.items():
                await _ask(client, name, {"metrics": metrics, "x": "batches", "maxPoints": 500, **body}, rounds)
    print(f"memory at its most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


async def _ask(client: httpx.AsyncClient, name: str, body: object, rounds: int) -> None:
    took, size = [], 0
    still = asyncio.ensure_future(_stillness())
    for _ in range(rounds):
        start = time.perf_counter()
        answer = await client.post("/detent/series", json=body)
        took.append(time.perf_counter() - start)
        answer.raise_for_status()
        size = len(answer.content)
    still.cancel()
    stood = await still
    print(
        f"{name:<18} {statistics.median(took) * 1000:7.1f} ms [{min(took) * 1000:.1f}..{max(took) * 1000:.1f}]"
        f"  {size:,} bytes; the loop stood still for {stood * 1000:.1f} ms at most"
    )


async def _stillness() -> float:
    most = 0.0
    try:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            most = max(most, time.perf_counter() - start - 0.001)
    except asyncio.CancelledError:
        return most


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    if not (folder / "master.sqlite").exists():
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        fill(folder, *map(int, arguments[1:3]))
        print(f"filled in {time.perf_counter() - start:.0f} s")
    asyncio.run(measure(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
