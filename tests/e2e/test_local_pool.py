"""A pool of type ``local``: agents start for the queue and end when it is empty or the cluster ends."""

import json

import pytest
from tests.support.live_cluster import live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

PROVIDER = {"type": "local", "max_agents": 2, "idle_timeout": 1.0, "start_timeout": 60, "tasks_as_me": True}


def pools(**changes):
    return json.dumps([{"pool_name": "default", "provider": PROVIDER | changes}])


@pytest.mark.long  # tests/contract/test_provider.py starts and ends such agents
def test_two_agents_start_for_a_queue_of_four_and_end_when_it_is_empty(tmp_path):
    with live_cluster(tmp_path / "cluster", slots=0, resource_pools=pools()) as cluster:
        agent_sets = set()
        queue = [create(cluster, SCRIPT, tmp_path / str(n), entrypoint="true") for n in range(4)]

        def all_ended():
            agent_sets.add(frozenset(agent["id"] for agent in cluster.session.get("/api/v1/agents")["agents"]))
            return all(experiment.state in ("COMPLETED", "ERROR") for experiment in queue)

        wait_until(all_ended, within=60, what="the queue is done")
        assert [experiment.state for experiment in queue] == ["COMPLETED"] * 4
        assert len(frozenset().union(*agent_sets)) == 2
        folder = cluster.data / "local-agents"
        wait_until(lambda: not list(folder.iterdir()), what="both agents have ended")
        assert cluster.session.get("/api/v1/agents")["agents"] == []
