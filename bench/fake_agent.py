"""An agent that runs nothing: it reports every desired container as running and keeps the link open."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from determined.client.session import Session
from determined.link.messages import (
    MASTER_MESSAGE,
    DesiredContainer,
    DesiredState,
    Hello,
    ReportedContainer,
    ReportedState,
    SlotFacts,
)
from determined.states import ContainerState
from determined_launch import environment as names


class FakeAgent:
    def __init__(self, url: str, data: Path, slots: int, *, name: str = "played") -> None:
        self.url = url.replace("http", "ws", 1)
        self.name = name
        self.token = (data / "agent-token").read_text().strip()
        self.slots = slots
        self.desired: dict[str, DesiredContainer] = {}
        self.complete = threading.Event()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        headers = {"Authorization": f"Bearer {self.token}"}
        uri = f"{self.url}/agents?id={self.name}&pool=default&version=0"
        async with connect(uri, additional_headers=headers, proxy=None) as link:
            await link.send(
                Hello(agent_id=self.name, slots=[SlotFacts(id=i) for i in range(self.slots)]).model_dump_json()
            )
            reading = asyncio.ensure_future(self._read(link))
            beating = asyncio.ensure_future(self._beat(link))
            await self._stop.wait()
            reading.cancel()
            beating.cancel()

    async def _read(self, link: ClientConnection) -> None:
        async for text in link:
            message = MASTER_MESSAGE.validate_json(text)
            if isinstance(message, DesiredState):
                self.desired = {w.container_id: w for w in message.containers if w.spec}
                await self._send_report(link)
                if len(self.desired) >= self.slots:
                    self.complete.set()

    async def _send_report(self, link: ClientConnection) -> None:
        reports = [
            ReportedContainer(container_id=w.container_id, allocation_id=w.allocation_id, state=ContainerState.RUNNING)
            for w in self.desired.values()
        ]
        await link.send(ReportedState(containers=reports).model_dump_json())

    async def _beat(self, link: ClientConnection) -> None:
        while True:
            await asyncio.sleep(2)
            await self._send_report(link)

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)


@contextmanager
def running_trials(url: str, data: Path, admin: Session, trials: int) -> Iterator[dict[int, str]]:
    """Yields the tokens of the tasks of a new experiment by trial id, after all of its trials run."""
    values = list(range(trials))
    config = (
        "name: bench\nentrypoint: 'true'\nsearcher: {name: grid, metric: loss, max_concurrent_trials: 0}\n"
        f"hyperparameters: {{x: {{type: categorical, vals: {values}}}}}\n"
    )
    agent = FakeAgent(url, data, trials)
    thread = threading.Thread(target=lambda: asyncio.run(agent.run()), daemon=True)
    thread.start()
    admin.post("/api/v1/experiments", {"config": config, "activate": True})
    if not agent.complete.wait(30):
        raise RuntimeError("the trials were not placed")
    try:
        yield {
            int(w.spec.environment[names.TRIAL_ID]): w.spec.environment[names.SESSION_TOKEN]
            for w in agent.desired.values()
            if w.spec
        }
    finally:
        agent.stop()
        thread.join(10)
