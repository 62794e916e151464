"""A large cluster of simulated agents: CPU and memory of a quiet master, and its restart after ``kill -9``.

500 agents with 20 slots each hold 10,000 running trials. DETENT_BENCH_SECONDS shortens the ten minutes.
"""

import asyncio
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.fake_agent import FakeAgent
from bench.figure import Figure
from bench.recovery import cold_start, is_healthy
from bench.servers import Running, cpu_seconds, master, resident_mib, started
from bench.submitting import until

AGENTS, SLOTS = 500, 20
TRIALS = AGENTS * SLOTS
SECONDS = float(os.environ.get("DETENT_BENCH_SECONDS", "600"))
"""Duration of the quiet period."""
KILLS = 7
MAX_CORE, MAX_GROWTH, MAX_STARTS = 0.3, 1.1, 3.0


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name, master(Path(name) / "data") as running:
        with _agents(running):
            began = time.perf_counter()
            _submit(running)
            until(lambda: _running_trials(running) == TRIALS, "all trials run", within=1800.0, pause=1.0)
            placed = time.perf_counter() - began
            pid = running.process.pid
            cpu, resident = cpu_seconds(pid), resident_mib(pid)
            time.sleep(SECONDS)
            load = (cpu_seconds(pid) - cpu) / SECONDS
            growth = resident_mib(pid) / resident
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
        ratios = [_restart(running.data) / cold_start(Path(name) / "empty") for _ in range(KILLS)]
    note = f"{AGENTS} agents, {TRIALS} running trials, {SECONDS:g} s; placed in {placed:.0f} s"
    return [
        Figure("load of a master with 500 agents", MAX_CORE, [load], unit="cores", note=note),
        Figure("its memory at the end / at the start", MAX_GROWTH, [growth], note=f"{resident:.0f} MiB"),
        Figure("start after kill -9 with 10,000 trials / an empty start", MAX_STARTS, ratios),
    ]


@contextmanager
def _agents(running: Running) -> Iterator[None]:
    agents = [FakeAgent(running.url, running.data, SLOTS, name=f"simulated-{number}") for number in range(AGENTS)]

    async def play() -> None:
        await asyncio.gather(*(agent.run() for agent in agents))

    thread = threading.Thread(target=lambda: asyncio.run(play()), daemon=True)
    thread.start()
    with running.session() as session:
        until(lambda: len(session.get("/api/v1/agents")["agents"]) == AGENTS, "all agents", within=300.0, pause=1.0)
    try:
        yield
    finally:
        for agent in agents:
            agent.stop()
        thread.join(30)


def _submit(running: Running) -> None:
    config = (
        "name: many trials\nentrypoint: 'true'\nsearcher: {name: grid, metric: loss, max_concurrent_trials: 0}\n"
        f"hyperparameters: {{x: {{type: int, minval: 1, maxval: {TRIALS}, count: {TRIALS}}}}}\n"
    )
    with running.session() as session:
        session.post("/api/v1/experiments", {"config": config, "activate": True})


def _running_trials(running: Running) -> int:
    with running.session() as session:
        overview = session.get("/api/v1/resource-pools")["resourcePools"]
    return sum(int(pool["slotsUsed"]) for pool in overview)


def _restart(data: Path) -> float:
    """Returns the seconds from the start of a master on the data of one killed by ``kill -9`` to its first answer."""
    argv = [sys.executable, "-P", "-m", "determined_master", "--data", str(data), "--port", "0", "--announce"]
    began = time.perf_counter()
    with started(argv, "ready: ") as (url, process):
        until(lambda: is_healthy(int(url.rsplit(":", 1)[1])), "an answer", pause=0.02)
        taken = time.perf_counter() - began
        process.kill()
    return taken


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
