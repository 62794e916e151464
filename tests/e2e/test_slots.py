"""Assignment of slots: a paused grid releases all of them, and a waiting trial starts as soon as some are free."""

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
    """Returns state and number of attempts of each trial, by its number."""
    state_of = {}
    for trial in experiment.trials:
        progress = experiment.cluster.session.get(f"/detent/trials/{trial['id']}/progress")
        state_of[trial["hparams"]["number"]] = (progress["state"], progress["runId"])
    return state_of


def test_a_paused_grid_releases_its_slots_and_continues_when_activated(cluster, tmp_path):
    gates = tuple(f"step-{n}-1" for n in range(6))
    grid = create(cluster, SCRIPT, tmp_path / "grid", gates=gates, **GRID)
    first = wait_until(lambda: held_at_gates(grid, 2), what=lambda: f"two trials run and four wait: {states(grid)}")
    waiting = create(cluster, SCRIPT, tmp_path / "waiting", resources={"slots_per_trial": 2}, entrypoint="true")
    wait_until(lambda: waiting.trials and waiting.progress["waiting"], what="it says why it waits")
    grid.do("pause")
    waiting.ended()
    wait_until(lambda: {state for state, _ in states(grid).values()} == {"PAUSED"}, what="all are paused")
    assert not cluster.held_slots
    # running trials were preempted after their step; waiting ones had never begun
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


def held_at_gates(grid, count):
    """Returns the numbers of the trials that wait at their gate, or None if they are not ``count``."""
    numbers = {n for n in range(6) if (grid.gates / f"step-{n}-1.here").exists()}
    return numbers if len(numbers) == count else None


def steps(grid, number):
    (trial,) = [trial for trial in grid.trials if trial["hparams"]["number"] == number]
    return trial["totalBatchesProcessed"]


@pytest.mark.long  # tests/integration/test_departures.py lets agents join a queue
def test_a_waiting_trial_starts_when_an_agent_joins(tmp_path):
    """The trial is placed within half a second of the agent's hello. Uses the best of three, since the machine may be
    busy."""
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
    """Returns the seconds from an agent's hello to the placement, by the master's clock."""
    database = sqlite3.connect(f"file:{cluster.data}/master.sqlite?mode=ro", uri=True)
    query = "SELECT min(time) FROM events WHERE kind = ? AND target_id = ?"
    with contextlib.closing(database):
        (connected,) = database.execute(query, ("connected", agent_id)).fetchone()
        (placed,) = database.execute(query, ("placed", allocation_id)).fetchone()
    return (placed - connected) / 1e6
