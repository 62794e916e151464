"""Adaptive search against Optuna's: events per second in memory, and trials per second with every decision saved.

The master's own search saves on its database: one transaction stores an event, the next one stores the state of the
method, its decisions, and the trials that it creates, with their tasks and places in the queue.
"""

import asyncio
import json
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bench.figure import Figure, Skipped, paired
from bench.servers import ROOT
from determined.states import TrialState
from determined_master.auth.principal import Principal
from determined_master.db.models import TrialRow
from determined_master.db.statements.prepared import Prepared
from determined_master.experiments.commands.create import Submission
from determined_master.searcher.actions import Create, Stop, TrialClosed, TrialValidated
from determined_master.searcher.methods import make
from determined_master.server import startup
from determined_master.settings.settings import Settings
from determined_master.trials import search_event_repository
from determined_master.users import repository as users
from determined_master.wiring.services import Services, build

STEP = 4
IN_MEMORY, SAVED = 500, 300


def figures(rounds: int = 7) -> list[Figure]:
    events, events_note = paired(lambda: play(IN_MEMORY), lambda: optuna(IN_MEMORY, None)[0], rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved, saved_note = paired(lambda: saved_trials(SAVED, folder), lambda: optuna(SAVED, folder)[1], rounds)
    return [
        Figure(
            "search events a second in memory / Optuna's", 5.0, events, at_least=True, note=f"{events_note} events/s"
        ),
        Figure(
            "trials a second, each decision saved / Optuna's", 5.0, saved, at_least=True, note=f"{saved_note} trials/s"
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


def play(trials: int) -> float:
    """Returns events per second of one search, trial after trial."""
    search = make(config(trials), None)
    losses = random.Random(1)
    events = 0
    start = time.perf_counter()
    live = [action.request_id for action in search.initial() if isinstance(action, Create)]
    while live:
        trial, step, is_stopped = live.pop(0), 0, False
        while not is_stopped:
            step += STEP
            actions = search.on_event(TrialValidated(trial, step, {"loss": losses.random()}))
            events += 1
            is_stopped = any(isinstance(action, Stop) for action in actions)
            live += [action.request_id for action in actions if isinstance(action, Create)]
        actions = search.on_event(TrialClosed(trial, "searcher_stopped"))
        events += 1
        live += [action.request_id for action in actions if isinstance(action, Create)]
    return events / (time.perf_counter() - start)


def saved_trials(trials: int, folder: Path) -> float:
    """Returns trials per second of a master without loops: one transaction stores each event, and in the next one the
    search of the experiment processes it, which creates and stops trials."""
    data = folder / f"ours-{time.monotonic_ns()}"
    data.mkdir()
    return asyncio.run(_saved(trials, build(Settings(data=data))))


async def _saved(trials: int, master: Services) -> float:
    await master.begin()
    startup.collect_from_now_on()  # as the master does when it is ready
    document = {**config(trials), "name": "search", "entrypoint": "python3 train.py"}
    async with master.database.read() as session:
        admin = await users.find_by_name(session, "admin")
    assert admin is not None
    principal = Principal(admin.id, admin.username, admin=True)
    experiment = await master.creator.submit(Submission(json.dumps(document), activate=True), principal)
    losses = random.Random(1)
    former = step = 0
    start = time.perf_counter()
    while trial := await _live(master) or await _live(master, after=experiment.id):
        step = step + STEP if trial == former else STEP
        former = trial
        async with master.database.write() as session:
            payload = {"steps": step, "metrics": {"loss": losses.random()}}
            await search_event_repository.add_event(session, experiment.id, trial, "validated", payload)
        await master.search.advance(experiment.id)
    seconds = time.perf_counter() - start
    await master.database.close()
    if former != trials:
        raise RuntimeError(f"the search ended after {former} of {trials} trials")
    return trials / seconds


async def _live(master: Services, after: int | None = None) -> int | None:
    """Returns the id of the running trial, or None. ``after``: an experiment whose search processes its events first."""
    if after is not None:
        await master.search.advance(after)
    async with master.database.read() as session:
        return await _RUNNING.first(session)


_RUNNING = Prepared(select(TrialRow.id).where(TrialRow.state == TrialState.ACTIVE))


def optuna(trials: int, folder: Path | None) -> tuple[float, float]:
    """Returns events and trials per second of Optuna's search, in memory or in a new SQLite file of ``folder``."""
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
