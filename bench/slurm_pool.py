"""A pool of type slurm, with recording programs in the place of Slurm's: the master's CPU and the number of questions.

Pilots are simulated agents that connect when their jobs exist. DETENT_BENCH_SECONDS shortens the minute.
"""

import asyncio
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.slurm_programs import FakeSlurm

from bench.fake_agent import FakeAgent
from bench.figure import Figure
from bench.servers import Running, cpu_seconds, master
from bench.submitting import until

PILOTS, WAITING = 100, 500
SECONDS = min(60.0, float(os.environ.get("DETENT_BENCH_SECONDS", "60")))
MAX_CORE, MAX_GROWTH = 0.02, 1.1
CONFIG = """name: many trials
entrypoint: 'true'
searcher: {{name: grid, metric: loss, max_concurrent_trials: 0}}
hyperparameters: {{x: {{type: int, minval: 0, maxval: {trials}, count: {trials}}}}}
"""


def figures() -> list[Figure]:
    few, many = _questions(1), _questions(WAITING)
    name = f"squeue calls a minute with {WAITING} waiting trials / with one"
    return [
        Figure("load of a master with 100 pilots", MAX_CORE, [_load()], unit="cores", note=f"{SECONDS:g} s, idle"),
        Figure(name, MAX_GROWTH, [many / few], note=f"{many:.1f} against {few:.1f}"),
    ]


def _load() -> float:
    with tempfile.TemporaryDirectory() as name:
        slurm = FakeSlurm(Path(name) / "slurm")
        slurm.set(held="RUNNING")
        with master(Path(name) / "data", variables=_variables(Path(name), slurm, PILOTS, min_agents=PILOTS)) as running:
            until(lambda: len(slurm.jobs) == PILOTS, "all jobs", within=300.0)
            with _agents(running, [job["Comment"].rpartition(":")[2] for job in slurm.jobs.values()]):
                time.sleep(5)
                before = cpu_seconds(running.process.pid)
                time.sleep(SECONDS)
                return (cpu_seconds(running.process.pid) - before) / SECONDS


def _questions(trials: int) -> float:
    """Returns how often the master asks for the queue in a minute while trials wait for pilots that wait."""
    with tempfile.TemporaryDirectory() as name:
        slurm = FakeSlurm(Path(name) / "slurm")
        slurm.set(held="PENDING")
        with master(Path(name) / "data", variables=_variables(Path(name), slurm, WAITING)) as running:
            with running.session() as session:
                body = {"config": CONFIG.format(trials=trials), "activate": True}
                session.post("/api/v1/experiments", body)
            until(lambda: len(slurm.jobs) == trials, "all jobs", within=600.0, pause=1.0)
            time.sleep(5)
            before = len(slurm.calls("squeue"))
            time.sleep(SECONDS)
            return (len(slurm.calls("squeue")) - before) * 60 / SECONDS


def _variables(folder: Path, slurm: FakeSlurm, agents: int, **provider: object) -> Mapping[str, str]:
    settings = {"type": "slurm", "max_agents": agents, "folder": str(folder / "pilots"), "master_url": "http://m:1"}
    pools = [{"pool_name": "default", "provider": settings | provider}]
    return {"DET_MASTER_RESOURCE_POOLS": json.dumps(pools), "PATH": slurm.environment["PATH"]}


@contextmanager
def _agents(running: Running, names: list[str]) -> Iterator[None]:
    agents = [FakeAgent(running.url, running.data, 1, name=name) for name in names]

    async def play() -> None:
        await asyncio.gather(*(agent.run() for agent in agents))

    thread = threading.Thread(target=lambda: asyncio.run(play()), daemon=True)
    thread.start()
    with running.session() as session:
        until(lambda: len(session.get("/api/v1/agents")["agents"]) == len(names), "all agents", within=300.0, pause=1.0)
    try:
        yield
    finally:
        for agent in agents:
            agent.stop()
        thread.join(30)


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
