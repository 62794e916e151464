"""Lists of 10,000 experiments with 2,000 metric names each: the time from request to answer, against its bound."""

import json
import random
import sqlite3
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.servers import master
from determined.client.session import Session
from determined.config import check

EXPERIMENTS = 10_000
METRICS = 2_000
STATES = ("COMPLETED",) * 7 + ("ERROR", "CANCELED", "PAUSED")
LABELS = ("baseline", "ablation", "sweep", "broken", "paper", "wide", "deep")
OPTIMIZERS = ("adam", "adamw", "sgd", "lion")
START = 1_760_000_000_000_000
_CONFIG = """
name: many
entrypoint: python3 train.py
hyperparameters: {}
searcher: {name: single, metric: loss}
"""


def fill(folder: Path, *, experiments: int = EXPERIMENTS, metrics: int = METRICS) -> None:
    """Fills a data folder for a master. Values are stored in the tables that lists read. The trials' own summaries
    contain only the searcher's metric; all metrics would need gigabytes."""
    with master(folder):
        pass  # it creates the first rows, the password and every index
    connection = sqlite3.connect(folder / "master.sqlite", isolation_level=None)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-500000", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    choice = random.Random(1)
    _add_experiments(connection, experiments, choice)
    _add_metrics(connection, experiments, metrics, choice)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


def _add_experiments(connection: sqlite3.Connection, count: int, choice: random.Random) -> None:
    checked = check(
        _CONFIG, name="many.yaml", defaults=[{"checkpoint_storage": {"type": "shared_fs", "host_path": "/x"}}]
    )
    assert checked.config is not None
    config = checked.config.to_json()
    config["resources"] |= {"resource_pool": "default", "priority": 42}
    optimizers = [choice.choice(OPTIMIZERS) for _ in range(count)]
    hparams = [
        {"lr": 10 ** choice.uniform(-5, -1), "width": choice.randrange(1, 9) * 64, "optimizer": o} for o in optimizers
    ]
    losses = [choice.random() for _ in range(count)]
    labels = [sorted(choice.sample(LABELS, choice.randrange(3))) for _ in range(count)]
    ids = range(1, count + 1)
    text = json.dumps(config)
    _insert(connection, "jobs", (_job(i) for i in ids))
    _insert(connection, "tasks", (_task(i) for i in ids))
    _insert(connection, "experiments", (_experiment(i, text, labels[i - 1], choice) for i in ids))
    _insert(connection, "trials", (_trial(i, hparams[i - 1], losses[i - 1]) for i in ids))
    _insert(connection, "experiment_summaries", (_summary(i, losses[i - 1]) for i in ids))
    marks = ({"label": word, "experiment_id": i} for i in ids for word in labels[i - 1])
    _insert(connection, "experiment_labels", marks)
    for name, kind in (("lr", "number"), ("width", "number"), ("optimizer", "text")):
        columns_of_experiment = [h[name] for h in hparams]
        _column(
            connection,
            "hyperparameter",
            f"hp.{name}",
            kind,
            ((i, *_halves(columns_of_experiment[i - 1])) for i in ids),
            count,
        )
    for name, value in _scalars(config, "config"):
        kind = "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "number"
        _column(connection, "config", name, kind, ((i, *_halves(value)) for i in ids), count)
    losses_of = ((i, loss, None, loss, loss + 1, loss + 0.5) for i, loss in zip(ids, losses, strict=True))
    _column(connection, "metric", "validation.loss", "number", losses_of, count)


def _add_metrics(connection: sqlite3.Connection, experiments: int, metrics: int, choice: random.Random) -> None:
    connection.execute("DROP INDEX ix_column_values_experiment")  # created in one go afterwards
    noise = [choice.random() for _ in range(experiments + metrics)]
    for number in range(metrics - 1):
        some = noise[number : number + experiments]
        rows = ((i, last, None, last / 2, last + 1, last + 0.25) for i, last in enumerate(some, 1))
        _column(connection, "metric", f"training.layer{number:04d}/gradient_norm", "number", rows, experiments)
    connection.execute("CREATE INDEX ix_column_values_experiment ON column_values (experiment_id)")


def _column(
    connection: sqlite3.Connection, kind: str, name: str, type_: str, rows: Iterator[tuple[Any, ...]], count: int
) -> None:
    _insert(connection, "column_names", [{"kind": kind, "name": name, "type": type_}])
    name_id = connection.execute("SELECT max(id) FROM column_names").fetchone()[0]
    counted = {"project_id": 1, "name_id": name_id, "count": count, "minimum": 0.0, "maximum": 1.0}
    _insert(connection, "column_counts", [counted])
    whole = ((name_id, *row, *(None,) * (6 - len(row))) for row in rows)
    connection.executemany("INSERT INTO column_values VALUES (?, ?, ?, ?, ?, ?, ?)", whole)


def _insert(connection: sqlite3.Connection, table: str, rows: Any) -> None:
    rows = list(rows)
    if rows:
        names = ", ".join(rows[0])
        marks = ", ".join(f":{name}" for name in rows[0])
        connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)


def _halves(value: Any) -> tuple[float | None, str | None]:
    if isinstance(value, bool):
        return float(value), str(value).lower()
    return (None, value) if isinstance(value, str) else (float(value), None)


def _scalars(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _scalars(value, f"{prefix}.{key}")
        elif isinstance(value, str | int | float):
            yield f"{prefix}.{key}", value


def _experiment(number: int, config: str, labels: list[str], choice: random.Random) -> dict[str, Any]:
    start = START + number * 60_000_000
    return {
        "id": number,
        "job_id": str(uuid.UUID(int=number)),
        "name": f"{choice.choice(LABELS)} {number}",
        "description": "",
        "notes": "",
        "labels": json.dumps(labels),
        "state": choice.choice(STATES),
        "config": config,
        "original_config": _CONFIG,
        "context_size": 0,
        "user_id": 1 + number % 2,
        "project_id": 1,
        "archived": 0,
        "progress": 1.0,
        "start_time": start,
        "end_time": start + choice.randrange(10**9),
        "pool": "default",
        "searcher_type": "single",
        "searcher_metric": "loss",
        "smaller_is_better": 1,
        "searcher_snapshot": "{}",
        "searcher_cursor": 0,
        "values_stale": 0,
    }


def _job(number: int) -> dict[str, Any]:
    position = START + number * 60_000_000
    return {"id": str(uuid.UUID(int=number)), "pool": "default", "priority": 42, "weight": 1.0, "position": position}


def _task(number: int) -> dict[str, Any]:
    return {
        "id": f"{number}.{uuid.UUID(int=number)}",
        "kind": "TRIAL",
        "job_id": str(uuid.UUID(int=number)),
        "user_id": 1 + number % 2,
        "experiment_id": number,
        "token_scope": "trial",
        "created_at": START + number * 60_000_000,
    }


def _trial(number: int, hparams: dict[str, Any], loss: float) -> dict[str, Any]:
    entry = {"type": "number", "last": loss, "min": loss, "max": loss + 1, "mean": loss + 0.5, "count": 2, "sum": 1}
    zeroes = ("seed", "restarts", "system_failures", "run_start_steps", "checkpoint_count", "checkpoint_size")
    return {
        "id": number,
        "experiment_id": number,
        "request_id": str(uuid.UUID(int=number)),
        "task_id": f"{number}.{uuid.UUID(int=number)}",
        "state": "COMPLETED",
        "hparams": json.dumps(hparams),
        "run_id": 1,
        "reported_run_id": 1,
        "closed": 1,
        "start_time": START,
        "steps_completed": 1000,
        "progress": 1.0,
        "runner_state": "",
        "invalid_hp": 0,
        "searcher_metric_value": loss,
        "summary_metrics": json.dumps({"validation_metrics": {"loss": entry}}),
        "run_metadata": "{}",
        "values_stale": 0,
    } | dict.fromkeys(zeroes, 0)


def _summary(number: int, loss: float) -> dict[str, Any]:
    row = {"experiment_id": number, "project_id": 1, "num_trials": 1, "trial_id": number, "source_trial_id": number}
    return row | {"searcher_metric_value": loss, "checkpoint_count": 0, "checkpoint_size": 0}


def _where(column: str, operator: str, value: Any) -> str:
    field = {"kind": "field", "columnName": column, "operator": operator, "value": value}
    return json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [field]}})


def questions(session: Session, metrics: int = METRICS) -> dict[str, tuple[float, Callable[[], object]]]:
    """Returns the requests of a page, each with its bound in seconds."""
    name = "training.layer{:04d}/gradient_norm.{}".format
    last = metrics - 2
    ten = [name(last * i // 9, "mean") for i in range(9)] + ["hp.optimizer"]

    def search(**body: Any) -> Callable[[], object]:
        return lambda: session.post("/detent/experiments/search", {"columns": ten, "limit": 50, **body})

    return {
        "the newest, ten columns": (0.5, search()),
        "filter by a metric, sort by another": (
            0.5,
            search(filter=_where(name(last // 2, "last"), "<", 0.5), sort=f"{name(last // 3, 'min')}=desc"),
        ),
        "filter by words, sort by two": (
            0.5,
            search(filter=_where("name", "contains", "Sweep"), sort="hp.optimizer=asc,validation.loss.min=asc"),
        ),
        "filter by the finer state, page 100": (
            0.5,
            search(filter=_where("state", "=", "PAUSED"), sort="duration=desc", offset=900),
        ),
        "sort by name, 500 at once": (0.5, search(sort="name=asc", limit=500)),
        "groups of a hyperparameter": (
            0.5,
            lambda: session.post("/detent/experiments/search/groups", {"by": "hp.optimizer"}),
        ),
        "columns with a word": (0.1, lambda: session.get("/detent/columns", query={"query": "layer19", "limit": 50})),
        "every column of a project": (0.1, lambda: session.get("/api/v1/projects/1/columns")),
        "ranges of every metric": (0.1, lambda: session.get("/api/v1/projects/1/experiments/metric-ranges")),
    }


def figures(rounds: int = 7) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        begun = time.monotonic()
        fill(folder)
        size = (folder / "master.sqlite").stat().st_size / 2**30
        note = f"{EXPERIMENTS} x {METRICS}: {size:.2f} GiB, filled in {time.monotonic() - begun:.0f} s"
        with master(folder) as running, running.session() as session:
            return [
                Figure(f"{what} / {bound:g} s", 1.0, [_seconds(ask) / bound for _ in range(rounds)], note=note)
                for what, (bound, ask) in questions(session).items()
            ]


def _seconds(ask: Callable[[], object]) -> float:
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sizes = [int(word) for word in sys.argv[2:]] or [EXPERIMENTS, METRICS]
        fill(Path(sys.argv[1]), experiments=sizes[0], metrics=sizes[1])
    else:
        for figure in figures():
            print(figure.line())
