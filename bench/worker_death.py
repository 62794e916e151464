"""From the death of a worker on one of two machines to the end of its peers and a readable error: printed without a
bound.

The machines are network namespaces, so this needs root.
"""

import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from tests.support.live_cluster import LiveCluster
from tests.support.live_machines import network
from tests.support.live_processes import carriers, environ_of

from bench.figure import Figure, Skipped
from bench.servers import ROOT
from bench.submitting import context_of, create, until
from determined.client import lifecycle

CONFIG = """
name: worker death
entrypoint: python3 -m determined.launch.torch_distributed waits.py
searcher: {name: single, metric: loss}
hyperparameters: {}
resources: {slots_per_trial: 2}
max_restarts: %d
"""


def figures(rounds: int = 20) -> list[Figure]:
    if os.geteuid() != 0:
        raise Skipped("only root may make machines of network namespaces")
    with tempfile.TemporaryDirectory() as name, network(2) as net:
        cluster = LiveCluster(Path(name) / "cluster", host="0.0.0.0")
        try:
            cluster.start_master()
            for machine in net.machines:
                address = f"http://{net.gateway}:{cluster.port}"
                cluster.start_agent(machine.hostname, master=address, prefix=machine.prefix)
            context = context_of(Path(name) / "context", [ROOT / "bench" / "trials" / "waits.py"])
            _, trial = create(cluster.session, CONFIG % rounds, context)
            taken = [_killed(cluster, trial, attempt) for attempt in range(1, rounds + 1)]
        finally:
            cluster.close()
    note = f"median {statistics.median(taken):.2f} s, worst {max(taken):.2f} s of {rounds}"
    return [Figure("worker death to peers gone and error visible", 2.0, taken, unit="s", note=note)]


def _killed(cluster: LiveCluster, trial: int, attempt: int) -> float:
    task = str(cluster.session.get(f"/api/v1/trials/{trial}")["trial"]["taskId"])

    def waiting() -> dict[int, int]:
        pids = {}
        for pid in carriers(cluster.cluster_id, task):
            environ = environ_of(pid)
            if environ.get("DET_WORKER_OF") and environ["DET_ALLOCATION_ID"].endswith(f".{attempt}"):
                pids[int(environ["RANK"])] = pid
        return pids if len(pids) == 2 else {}

    workers = until(waiting, "two workers that wait")
    before = set(carriers(cluster.cluster_id, task))
    start = time.perf_counter()
    os.kill(workers[1], signal.SIGKILL)

    def over() -> bool:
        attempts = lifecycle.attempts(cluster.session, trial)
        return attempts[attempt - 1]["message"].startswith("rank 1 on") and not before & set(
            carriers(cluster.cluster_id, task)
        )

    until(over, "the end of all and its reason", pause=0.02)
    return time.perf_counter() - start


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
