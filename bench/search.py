"""Adaptive search against Optuna's: events a second in memory, and trials a second with every decision saved.

Saved means as the master saves it: the method's position and what it decided, in one SQLite transaction for each event,
and the whole snapshot as often as the master stores it. Rows of trials and tasks are no part of either side.
"""

import json
import os
import random
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.figure import Figure, Skipped, paired
from bench.servers import ROOT
from determined_master.experiments.search import EVENTS_A_SNAPSHOT
from determined_master.searcher.actions import Action, Create, Event, Stop, TrialClosed, TrialValidated
from determined_master.searcher.method import SearchMethod
from determined_master.searcher.methods import make

STEP = 4
IN_MEMORY, SAVED = 500, 300
Apply = Callable[[SearchMethod, Event, list[Action]], None]


def figures(rounds: int = 7) -> list[Figure]:
    events, events_note = paired(lambda: play(IN_MEMORY)[0], lambda: optuna(IN_MEMORY, None)[0], rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved, saved_note = paired(lambda: saved_trials(SAVED, folder), lambda: optuna(SAVED, folder)[1], rounds)
    return [
        Figure(
            "search events a second in memory / Optuna's", 5.0, events, at_least=True, note=f"{events_note} events/s"
        ),
        Figure(
            "trials a second, each decision saved / Optuna's", 20.0, saved, at_least=True, note=f"{saved_note} trials/s"
        ),
    ]


def config(trials: int) -> dict[str, Any]:
    return {
        "searcher": {
            "name": "async_halving",
            "metric": "loss",
            "time_metric": "batches",
            "max_time": 64,
            "num_rungs": 3,
            "divisor": 4.0,
            "max_trials": trials,
            "max_concurrent_trials": 1,
        },
        "hyperparameters": {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}},
        "reproducibility": {"experiment_seed": 1},
    }


def play(trials: int, apply: Apply = lambda *_: None) -> tuple[float, float]:
    """Returns events and trials a second of one search, trial after trial."""
    search = make(config(trials), None)
    losses = random.Random(1)
    events = 0
    start = time.perf_counter()
    live = [action.request_id for action in search.initial() if isinstance(action, Create)]
    while live:
        trial, step, is_stopped = live.pop(0), 0, False
        while not is_stopped:
            step += STEP
            event = TrialValidated(trial, step, {"loss": losses.random()})
            actions = search.on_event(event)
            apply(search, event, actions)
            events += 1
            is_stopped = any(isinstance(action, Stop) for action in actions)
            live += [action.request_id for action in actions if isinstance(action, Create)]
        closed = TrialClosed(trial, "searcher_stopped")
        actions = search.on_event(closed)
        apply(search, closed, actions)
        events += 1
        live += [action.request_id for action in actions if isinstance(action, Create)]
    seconds = time.perf_counter() - start
    return events / seconds, trials / seconds


def saved_trials(trials: int, folder: Path) -> float:
    """Returns trials a second with each event and its decisions in one transaction of SQLite."""
    path = folder / f"ours-{time.monotonic_ns()}.sqlite"
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE facts(id INTEGER PRIMARY KEY, event TEXT);"
        "CREATE TABLE decisions(id INTEGER PRIMARY KEY, action TEXT);"
        "CREATE TABLE search(id INTEGER PRIMARY KEY, cursor INTEGER, snapshot TEXT);"
        "INSERT INTO search VALUES (1, 0, '');"
    )
    count = 0

    def apply(search: SearchMethod, event: Event, actions: list[Action]) -> None:
        nonlocal count
        count += 1
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO facts(event) VALUES (?)", (json.dumps(vars(event)),))
        if actions:
            rows = [(str(action),) for action in actions]
            database.executemany("INSERT INTO decisions(action) VALUES (?)", rows)
        database.execute("UPDATE search SET cursor=?", (count,))
        if count % EVENTS_A_SNAPSHOT == 0:
            database.execute("UPDATE search SET snapshot=?", (json.dumps(search.snapshot()),))
        database.execute("COMMIT")

    try:
        return play(trials, apply)[1]
    finally:
        database.close()


def optuna(trials: int, folder: Path | None) -> tuple[float, float]:
    """Returns events and trials a second of Optuna's search, in memory or in a new SQLite file of ``folder``."""
    home = Path(os.environ.get("DETENT_OPTUNA") or ROOT / ".cache" / "optuna")
    python = home / "bin" / "python"
    if not python.exists():
        raise Skipped("Optuna is not installed: make optuna, or DETENT_OPTUNA=FOLDER")
    argv = [str(python), str(ROOT / "bench" / "reference" / "optuna_search.py"), str(trials)]
    if folder is not None:
        argv.append(f"sqlite:///{folder}/optuna-{time.monotonic_ns()}.sqlite")
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    events, per_second = done.stdout.split()
    return float(events), float(per_second)


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
