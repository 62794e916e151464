"""Searches whose method runs in a task: the requests of that task, which a test sends itself."""

from dataclasses import dataclass, field
from typing import Any

import httpx
from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer

OWN = """
name: own
entrypoint: python3 run.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}, depth: 3}
max_restarts: 0
searcher: {name: search_method, method: "my_search:MySearch", metric: loss, max_trials: 3, max_concurrent_trials: 2}
"""


@dataclass
class Runner:
    """Sends the requests of the task of a search."""

    cluster: Cluster
    desired: DesiredContainer
    experiment_id: int = 1
    cursor: int = -1
    snapshot: dict[str, Any] = field(default_factory=lambda: {"seen": 0})

    @property
    def path(self) -> str:
        return f"/detent/experiments/{self.experiment_id}/search-task"

    async def get(self, path: str = "", **query: Any) -> httpx.Response:
        headers = self.cluster.as_task(self.desired.allocation_id)
        return await self.cluster.client.get(self.path + path, params=query, headers=headers)

    async def events(self, timeout: int = 30) -> list[dict[str, Any]]:
        answer = await self.get("/events", cursor=self.cursor, timeoutSeconds=timeout)
        assert answer.status_code == 200, answer.text
        self.to = answer.json()["to"]
        events: list[dict[str, Any]] = answer.json()["events"]
        return events

    async def start(self) -> dict[str, Any]:
        answer = await self.get()
        assert answer.status_code == 200, answer.text
        state: dict[str, Any] = answer.json()
        return state

    async def step(self, *actions: dict[str, Any], to: int | None = None, **more: Any) -> httpx.Response:
        end = self.to if to is None else to
        body = {"cursor": self.cursor, "to": end, "actions": actions, "snapshot": self.snapshot, **more}
        answer = await self.cluster.post(f"{self.path}/steps", body, **self.cluster.as_task(self.desired.allocation_id))
        if answer.status_code == 200:
            self.cursor = end
        return answer

    async def fail(self, reason: str, *, is_final: bool) -> None:
        body = {"reason": reason, "isFinal": is_final}
        answer = await self.cluster.post(
            f"{self.path}/failures", body, **self.cluster.as_task(self.desired.allocation_id)
        )
        assert answer.status_code == 200, answer.text


def create_action(name: str, **hparams: Any) -> dict[str, Any]:
    return {"kind": "create", "requestId": name, "hparams": hparams, "seed": 1, "reason": f"wanted {name}"}


async def container(agent: FakeAgent, kind: str, *, but: str = "") -> DesiredContainer:
    """Waits for a desired container of a kind of task."""

    async def match() -> DesiredContainer | None:
        return next(
            (w for w in await agent.desired() if w.spec and w.spec.task_type == kind and w.allocation_id != but), None
        )

    return await eventually(match)


async def begin_search(cluster: Cluster, config: str = OWN, slots: int = 4) -> tuple[FakeAgent, Runner]:
    agent = await cluster.join(slots=slots)
    await cluster.create(config)
    desired = await container(agent, "SEARCH")
    await agent.run(desired)
    return agent, Runner(cluster, desired)


async def list_trials(cluster: Cluster) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await cluster.get("/api/v1/experiments/1/trials"))["trials"]
    return sorted(rows, key=lambda each: int(each["id"]))


async def wait_for_state(cluster: Cluster, state: str) -> str:
    """Waits until the experiment is in ``state``; returns the texts of its events."""

    async def is_there() -> bool:
        return await cluster.state(1) == f"STATE_{state}"

    await eventually(is_there)
    events = (await cluster.get("/detent/events", target_type="experiment", target_id=1))["events"]
    return " | ".join(each["text"] for each in events)
