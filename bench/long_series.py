"""Long curves: fills a new database with runs of one metric, and measures the master's cost of drawing them.

``python -m bench.long_series FOLDER [RUNS [POINTS]]`` fills FOLDER/master.sqlite and requests all of them at once.
"""

import json
import math
import random
import resource
import sqlite3
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

from bench import datasets
from bench.datasets import START
from determined_master.metric_series.downsampling import SIZE
from determined_master.metric_series.series_packer import chunk_rows_of
from determined_master.metric_series.series_points import Points


def fill(folder: Path, runs: int = 100, points: int = 100_000, *, metric: str = "loss", reports: bool = True) -> None:
    """Stores an experiment of ``runs`` ended trials with ``points`` reports each, packed as the master packs them.
    Without ``reports`` only the packed points are stored, in a tenth of the time; curves look the same."""
    with datasets.database(folder) as connection:
        experiment = datasets.experiment(connection, "long series", metric)
        for run in range(runs):
            _run(connection, experiment, run, points, metric, reports)


def _run(connection: sqlite3.Connection, experiment: int, run: int, count: int, metric: str, reports: bool) -> None:
    state = {metric: {"type": "number", "count": count, "sum": 0.0, "mean": 0.5, "min": 0.0, "max": 3.0, "last": 0.1}}
    trial = datasets.trial(
        connection,
        experiment,
        run,
        steps_completed=count,
        end_time=START + count * 1_000_000,
        summary_metrics=json.dumps({"avg_metrics": state}),
        hparams=json.dumps({"lr": 10 ** -(1 + run % 5), "width": 2 ** (run % 7)}),
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
    series = datasets.insert(
        connection, "series", trial_id=trial, group="training", name=metric, points=count, packed_id=last
    )
    for start in range(0, count, SIZE):
        part = whole.part(start, start + SIZE)
        ids = range(first + start, first + start + len(part)) if reports else range(len(part))
        for row in chunk_rows_of(part, start // SIZE, ids):
            datasets.insert(connection, "series_chunks", series_id=series, **row)
    datasets.insert(
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
    """Returns a decreasing loss with noise and one peak that a drawing must preserve."""
    noise = random.Random(run)
    values = array("d", (math.exp(-4 * i / count) + 0.05 * noise.random() + run / 500 for i in range(count)))
    if count:
        values[noise.randrange(count)] = 3.0
    times = array("q", (START + i * 1_000_000 + noise.randrange(10_000) for i in range(count)))
    return Points(array("q", range(1, count + 1)), times, array("d", [math.nan]) * count, values)


def _rows(trial: int, first: int, points: Points, metric: str) -> Iterator[tuple[int, int, int, int, str]]:
    for i in range(len(points)):
        yield first + i, trial, points.batches[i], points.times[i], json.dumps({metric: points.values[i]})


async def measure(folder: Path, *, rounds: int = 5) -> None:
    """Prints the seconds of each request through the whole app, and the longest time for which the event loop was
    blocked."""
    async with datasets.app_over(folder) as (_master, client):
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
            question = {"metrics": metrics, "x": "batches", "maxPoints": 500, **body}
            await datasets.measured(name, lambda asked=question: client.post("/detent/series", json=asked), rounds)  # type: ignore[misc]
    print(f"memory at its most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    datasets.main(sys.argv[1:], fill, measure)
