"""Kills of the master between the lots in which it changes very many trials: no trial is lost or changed twice."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.waiting import wait_until

from determined_master.searcher.actions import Create, CreateMore, LotDue
from determined_master.searcher.methods import make

pytestmark = pytest.mark.budget(40, "kills and starts a master again and again")

COUNT = 2_000
MANY = 20_000
CONFIG = """
name: many
entrypoint: "true"
searcher: {{name: random, metric: loss, max_trials: {count}, max_concurrent_trials: 0}}
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
reproducibility: {{experiment_seed: 5}}
"""
POOLS = [{"pool_name": "default"}, {"pool_name": "big"}]
PATH = "/api/v1/experiments/1"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    """Yields a cluster without agents, so that the trials wait for slots."""
    with live_cluster(tmp_path / "cluster", slots=0, resource_pools=json.dumps(POOLS)) as created:
        yield created


def stored(cluster: LiveCluster, query: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        return connection.execute(query).fetchall()


def count(cluster: LiveCluster, of: str) -> int:
    return int(str(stored(cluster, f"SELECT count(*) FROM {of}")[0][0]))


def expected(cluster: LiveCluster) -> list[tuple[object, ...]]:
    """Returns request id and seed of the trials that an uninterrupted search creates."""
    ((config,),) = stored(cluster, "SELECT config FROM experiments WHERE id = 1")
    search = make(json.loads(str(config)), None)
    actions = search.initial()
    while isinstance(actions[-1], CreateMore):
        actions = actions[:-1] + search.on_event(LotDue())
    return [(each.request_id, each.seed) for each in actions if isinstance(each, Create)]


def kill_and_start(cluster: LiveCluster, unfinished: str) -> None:
    """Kills the master while rows of ``unfinished`` are left to change, and starts it again."""
    cluster.kill_master()
    left = count(cluster, unfinished)
    print(f"killed with {left} rows left of {unfinished}")
    assert left > 0, "the kill came too late"
    cluster.start_master()


@pytest.mark.long  # tests/integration/test_large_jobs.py starts masters between the same lots
@pytest.mark.parametrize("number", [COUNT, pytest.param(MANY, marks=pytest.mark.long)], ids=["sample", "all"])
def test_a_search_is_created_paused_moved_and_stopped_over_kills_of_the_master(cluster: LiveCluster, number: int):
    within = 60 + number / 100
    cluster.session.post("/api/v1/experiments", {"config": CONFIG.format(count=number), "activate": True})
    for _ in range(2):
        cluster.kill_master()
        assert 0 < count(cluster, "trials") < number, "the kill came too late"
        cluster.start_master()
    wait_until(lambda: count(cluster, "trials") == number, within=within, what="all trials")
    created = stored(cluster, "SELECT request_id, seed FROM trials ORDER BY id")
    assert created == expected(cluster)

    waiting = "allocations WHERE state = 'PENDING'"
    wait_until(lambda: count(cluster, waiting) == number, within=within, what="an attempt of each trial")
    ((job,),) = stored(cluster, "SELECT job_id FROM experiments WHERE id = 1")
    cluster.session.post("/api/v1/job-queues", {"updates": [{"jobId": job, "resourcePool": "big", "priority": 60}]})
    kill_and_start(cluster, f"{waiting} AND pool = 'default'")
    moved = f"{waiting} AND pool = 'big' AND priority = 60"
    wait_until(lambda: count(cluster, moved) == number, within=within, what="all attempts in the other pool")
    assert count(cluster, waiting) == number

    cluster.session.post(f"{PATH}/pause")
    kill_and_start(cluster, "trials WHERE state = 'ACTIVE'")
    wait_until(lambda: count(cluster, "trials WHERE state = 'PAUSED'") == number, within=within, what="the pause")
    assert count(cluster, waiting) == 0

    cluster.session.post(f"{PATH}/activate")
    wait_until(lambda: count(cluster, waiting) == number, within=within, what="another attempt of each trial")
    cluster.session.post(f"{PATH}/kill")
    kill_and_start(cluster, "trials WHERE state = 'ACTIVE'")
    over = "experiments WHERE state = 'CANCELED'"
    wait_until(lambda: count(cluster, over) == 1, within=within, what="the end of the experiment")
    assert count(cluster, "trials WHERE state = 'CANCELED'") == number
    assert count(cluster, waiting) == 0

    cluster.session.post("/api/v1/experiments/continue", {"id": 1})
    kill_and_start(cluster, "trials WHERE state = 'CANCELED'")
    wait_until(lambda: count(cluster, waiting) == number, within=within, what="a new attempt of each trial")
    # Each trial was continued once, exists once and waits once.
    again = "events WHERE target_type = 'trial' AND json_extract(payload, '$.from') = 'CANCELED'"
    assert count(cluster, again) == number
    assert stored(cluster, "SELECT request_id, seed FROM trials ORDER BY id") == created
    assert count(cluster, "(SELECT task_id FROM allocations WHERE state = 'PENDING' GROUP BY task_id)") == number
