"""A queue of 100,000: the duration of a scheduler tick, and the delay of other requests meanwhile.

The tick is the master's: ``AgentManager.reconcile`` on a database, from the commit that ended a running trial to the
commit that placed the next one. ``/info`` is requested from a running master, together with ``det why`` and changes of
priorities, while a provider decides after each of them.
"""

import asyncio
import gc
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path

from sqlalchemy import create_engine
from tests.support.queue_rows import TRIALS_A_JOB, fill

from bench.fake_agent import FakeAgent
from bench.figure import Figure
from bench.servers import Running, master, resident_mib
from bench.submitting import until
from determined.link.messages import Hello, SlotFacts
from determined.states import ContainerState, ExitReason
from determined_master.allocations import repository as allocation_rows
from determined_master.settings.settings import Settings
from determined_master.wiring.services import Services, build

SHORT, LONG = 1000, 100_000
AGENTS, SLOTS = 25, 8
DECISIONS = 150
MAX_RATIO, MAX_MS = 2.0, 50.0
QUESTIONS = 60
PROVIDER = {"type": "command", "launch": ["false"], "terminate": ["true"], "max_agents": 4, "slots_per_agent": 8}
POOLS = {"DET_MASTER_RESOURCE_POOLS": json.dumps([{"pool_name": "default", "provider": PROVIDER}])}


class Ticking:
    """A master without loops, over a queue of ``count``. Each round it decides ``DECISIONS`` times."""

    def __init__(self, folder: Path, count: int) -> None:
        self.master: Services = build(Settings(data=folder))
        self.count = count

    async def begin(self) -> None:
        master = self.master
        await master.begin()
        with master.database.group_engine.begin() as connection:
            fill(connection, self.count)
        for number in range(AGENTS):
            slots = [SlotFacts(id=n) for n in range(SLOTS)]
            await master.agents.welcome(Hello(agent_id=f"agent-{number:02}", pool="default", slots=slots))
        await master.managers.reconcile()
        gc.collect()

    async def round(self) -> float:
        """Returns the median duration of a tick, in seconds."""
        seconds = []
        for _ in range(DECISIONS):
            await self._end_one()
            began = time.perf_counter()
            await self.master.managers.reconcile()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)

    async def _end_one(self) -> None:
        async with self.master.database.write() as session:
            name, *_ = [hold for hold, _ in await allocation_rows.live_holds(session)]
            row = await allocation_rows.get(session, name.allocation_id)
            for container in await allocation_rows.containers_of(session, row.id):
                await allocation_rows.move_container(session, self.master.clock, container, ContainerState.TERMINATED)
            await self.master.allocations.end(session, row, ExitReason.ERRORED)

    async def close(self) -> None:
        self.master.managers.close()
        await self.master.database.close()


async def ticks(folder: Path, rounds: int) -> tuple[list[float], str]:
    """Returns the ratios of a tick with the long queue to one with the short queue, and both as text."""
    short, long = Ticking(folder / "short", SHORT + rounds * DECISIONS), Ticking(folder / "long", LONG)
    for queue in (short, long):
        await queue.begin()
    pairs = [(await long.round(), await short.round()) for _ in range(rounds)]
    for queue in (short, long):
        await queue.close()
    median = [statistics.median(some) for some in zip(*pairs, strict=True)]
    return [a / b for a, b in pairs], f"{median[0] * 1e3:.2f} ms against {median[1] * 1e3:.2f} ms"


def answers(folder: Path) -> tuple[list[float], list[float], str]:
    """Returns the 99th percentile of ``/info`` in milliseconds for each third of the requests, the times of ``det why``
    in milliseconds, and the memory of the master as text."""
    with master(folder):
        pass  # it creates the database
    engine = create_engine(f"sqlite:///{folder / 'master.sqlite'}")
    with engine.begin() as connection:
        fill(connection, LONG)
    engine.dispose()
    with master(folder, variables=POOLS) as running, running.session() as session:
        agent = FakeAgent(running.url, running.data, SLOTS)
        threading.Thread(target=lambda: asyncio.run(agent.run()), daemon=True).start()
        until(lambda: _used(running) > 0, "the first trials run", within=120.0, pause=0.5)
        times: list[list[float]] = []
        whys: list[float] = []
        for third in range(3):
            over, taken = threading.Event(), list[float]()
            asking = threading.Thread(target=_ask, args=(running, over, taken))
            asking.start()
            for number in range(third, QUESTIONS, 3):
                experiment = 1 + number * 3 % (LONG // TRIALS_A_JOB)
                began = time.perf_counter()
                session.get(f"/detent/experiments/{experiment}/why")
                whys.append(1e3 * (time.perf_counter() - began))
                session.patch(f"/api/v1/experiments/{experiment}", {"resources": {"priority": 42 + number % 50}})
            over.set()
            asking.join()
            times.append(taken)
        memory = f"{resident_mib(running.process.pid):.0f} MiB"
        agent.stop()
    return [sorted(third)[int(len(third) * 0.99)] for third in times], whys, memory


def _ask(running: Running, over: threading.Event, taken: list[float]) -> None:
    with running.session() as session:
        while not over.wait(0.01):
            began = time.perf_counter()
            session.get("/info")
            taken.append(1e3 * (time.perf_counter() - began))


def _used(running: Running) -> int:
    with running.session() as session:
        return sum(int(pool["slotsUsed"]) for pool in session.get("/api/v1/resource-pools")["resourcePools"])


def figures(rounds: int = 5) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        ratios, words = asyncio.run(ticks(Path(name), rounds))
        times, whys, memory = answers(Path(name) / "answers")
    note = f"det why {statistics.median(whys):.0f} ms, at most {max(whys):.0f} ms; master {memory}"
    return [
        Figure("tick of the scheduler on a database, 100,000 / 1,000 queued", MAX_RATIO, ratios, note=words),
        Figure("/info p99 beside 100,000 queued, why and provider asked", MAX_MS, times, unit="ms", note=note),
    ]


if __name__ == "__main__":
    for figure in figures():
        print(figure.line(), flush=True)
