"""Who gets the slots: a paused grid gives up all of them, and a waiting trial starts as soon as there are some."""

import contextlib
import sqlite3

import pytest
from tests.support.live_cluster import live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

GRID = {
    "hyperparameters": {"number": {"type": "categorical", "vals": [0, 1, 2, 3, 4, 5]}},
    "searcher": {"name": "grid", "metric": "loss", "max_concurrent_trials": 6},
}


def states(experiment):
    """Number of each trial → (state, attempts)."""
    found = {}
    for trial in experiment.trials:
        progress = experiment.cluster.session.get(f"/detent/trials/{trial['id']}/progress")
        found[trial["hparams"]["number"]] = (progress["state"], progress["runId"])
    return found


def test_a_paused_grid_makes_room_and_comes_back(cluster, tmp_path):
    gates = tuple(f"step-{n}-1" for n in range(6))
    grid = create(cluster, SCRIPT, tmp_path / "grid", gates=gates, **GRID)
    first = wait_until(lambda: at(grid, 2), what=lambda: f"two trials run and four wait: {states(grid)}")
    waiting = create(cluster, SCRIPT, tmp_path / "waiting", resources={"slots_per_trial": 2}, entrypoint="true")
    wait_until(lambda: waiting.trials and waiting.progress["waiting"], what="it says why it waits")
    grid.do("pause")
    waiting.ended()
    wait_until(lambda: {state for state, _ in states(grid).values()} == {"PAUSED"}, what="all are paused")
    assert not cluster.held_slots
    # what ran was asked to leave and left after its step; what waited had never begun
    assert {n for n in range(6) if steps(grid, n) == 2} == first
    grid.do("activate")
    wait_until(lambda: [s for s, _ in states(grid).values()].count("COMPLETED") >= 2, what="two are finished")
    grid.do("pause")
    wait_until(lambda: {s for s, _ in states(grid).values()} <= {"PAUSED", "COMPLETED"}, what="the rest is paused")
    before = states(grid)
    finished = {number for number, (state, _) in before.items() if state == "COMPLETED"}
    for number in range(6):
        grid.open_gate(f"step-{number}-1")
    grid.do("activate")
    grid.ended()
    after = states(grid)
    assert {state for state, _ in after.values()} == {"COMPLETED"}
    assert {number for number in after if after[number][1] == before[number][1]} >= finished
    assert all(after[number][1] > before[number][1] for number in set(after) - finished)
    assert not cluster.held_slots


def at(grid, count):
    """The numbers of those that stand at their gate, once there are ``count``."""
    here = {n for n in range(6) if (grid.gates / f"step-{n}-1.here").exists()}
    return here if len(here) == count else None


def steps(grid, number):
    (trial,) = [trial for trial in grid.trials if trial["hparams"]["number"] == number]
    return trial["totalBatchesProcessed"]


def test_a_waiting_trial_starts_when_an_agent_joins(tmp_path):
    """Placed within half a second of the agent's hello; the best of three, since this machine may be busy."""
    with live_cluster(tmp_path / "cluster", slots=0) as cluster:
        took = []
        for number in range(3):
            experiment = create(cluster, SCRIPT, tmp_path / str(number), held=("step-0-0",))
            wait_until(lambda e=experiment: e.trials and e.progress["waiting"], what="it says why it waits")
            cluster.start_agent(f"agent-{number}")
            experiment.running()
            took.append(seconds_between(cluster, f"agent-{number}", f"{experiment.task_id}.1"))
        print(took)
        assert min(took) <= 0.5


def seconds_between(cluster, agent_id, allocation_id):
    """From an agent's hello to the placement, by the master's own clock."""
    database = sqlite3.connect(f"file:{cluster.data}/master.sqlite?mode=ro", uri=True)
    query = "SELECT min(time) FROM events WHERE kind = ? AND target_id = ?"
    with contextlib.closing(database):
        (connected,) = database.execute(query, ("connected", agent_id)).fetchone()
        (placed,) = database.execute(query, ("placed", allocation_id)).fetchone()
    return (placed - connected) / 1e6
