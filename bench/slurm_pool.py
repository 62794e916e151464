"""A pool of type slurm: the first step on an idle pilot of a real Slurm, and with recording programs in the place of
Slurm's the master's CPU and the number of questions.

There pilots are simulated agents that connect when their jobs exist. DETENT_BENCH_SECONDS shortens the minute.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.slurm import running_slurm
from tests.support.slurm_programs import FakeSlurm

from bench.fake_agent import FakeAgent
from bench.figure import Figure, paired
from bench.processes import det, seconds_to
from bench.servers import ROOT, Running, cpu_seconds, master, program
from bench.submitting import context_of, until

PILOTS, WAITING = 100, 500
SECONDS = min(60.0, float(os.environ.get("DETENT_BENCH_SECONDS", "60")))
MAX_CORE, MAX_GROWTH, MAX_FIRST_STEP = 0.02, 1.1, 1.1
LINE = "first step done"
ONE_TRIAL = """name: first-step
entrypoint: python3 plain.py
searcher: {{name: single, metric: loss}}
resources: {{slots_per_trial: 1, resource_pool: {pool}}}
"""
CONFIG = """name: many trials
entrypoint: 'true'
searcher: {{name: grid, metric: loss, max_concurrent_trials: 0}}
hyperparameters: {{x: {{type: int, minval: 0, maxval: {trials}, count: {trials}}}}}
"""


def figures() -> list[Figure]:
    few, many = _questions(1), _questions(WAITING)
    name = f"squeue calls a minute with {WAITING} waiting trials / with one"
    return [
        _first_step(),
        Figure("load of a master with 100 pilots", MAX_CORE, [_load()], unit="cores", note=f"{SECONDS:g} s, idle"),
        Figure(name, MAX_GROWTH, [many / few], note=f"{many:.1f} against {few:.1f}"),
    ]


def _first_step(rounds: int = 9) -> Figure:
    """Compares a pool of one pilot with a pool of one agent of the same master, both idle."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name, running_slurm(Path(name) / "slurm") as slurm:
        folder = Path(name)
        context = context_of(folder / "context", [ROOT / "bench" / "trials" / "plain.py"])
        provider = {"type": "slurm", "max_agents": 1, "min_agents": 1, "folder": str(folder / "pilots")}
        pools = [{"pool_name": "agents"}, {"pool_name": "slurm", "provider": provider}]
        variables = {"DET_MASTER_RESOURCE_POOLS": json.dumps(pools), "DET_MASTER_DEFAULT_POOL": "agents"}
        variables |= {"DET_MASTER_HOST": "0.0.0.0"} | slurm.environment
        with master(folder / "data", variables=variables) as running, program(_agent(running, folder)):
            environment = {**os.environ, "DET_MASTER": running.url, "DET_USER_TOKEN": running.token}
            with running.session() as session:
                until(lambda: len(session.get("/api/v1/agents")["agents"]) == 2, "both agents", within=60.0)

            def in_pool(pool: str) -> float:
                file = folder / f"{pool}.yaml"
                file.write_text(ONE_TRIAL.format(pool=pool), encoding="utf-8")
                argv = [det(), "e", "create", str(file), str(context), "-f"]
                return seconds_to(LINE, argv, cwd=folder, environment=environment)

            in_pool("slurm"), in_pool("agents")
            ratios, note = paired(lambda: in_pool("slurm"), lambda: in_pool("agents"), rounds)
    name = "create to first step on an idle pilot / on an idle agent"
    return Figure(name, MAX_FIRST_STEP, ratios, note=f"{note} s")


def _agent(running: Running, folder: Path) -> list[str]:
    argv = [sys.executable, "-m", "determined_agent", "--master", running.url, "--slots", "1", "--tasks-as-me"]
    token = str(running.data / "agent-token")
    return [*argv, "--pool", "agents", "--id", "usual", "--token-file", token, "--data", str(folder / "agent")]


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
