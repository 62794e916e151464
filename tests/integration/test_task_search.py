"""Searches whose method runs in a task, on a cluster whose agents are played: which steps are stored, and how they end."""

from dataclasses import dataclass, field
from typing import Any

import httpx
from tests.integration.test_halving_search import report, trial_of
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
    """Sends what the task of the search would send."""

    one: Cluster
    wish: DesiredContainer
    experiment_id: int = 1
    cursor: int = -1
    snapshot: dict[str, Any] = field(default_factory=lambda: {"seen": 0})

    @property
    def path(self) -> str:
        return f"/detent/experiments/{self.experiment_id}/search-task"

    async def get(self, path: str = "", **query: Any) -> httpx.Response:
        headers = self.one.as_task(self.wish.allocation_id)
        return await self.one.client.get(self.path + path, params=query, headers=headers)

    async def events(self, timeout: int = 30) -> list[dict[str, Any]]:
        answer = await self.get("/events", cursor=self.cursor, timeoutSeconds=timeout)
        assert answer.status_code == 200, answer.text
        self.to = answer.json()["to"]
        found: list[dict[str, Any]] = answer.json()["events"]
        return found

    async def step(self, *actions: dict[str, Any], to: int | None = None, **more: Any) -> httpx.Response:
        end = self.to if to is None else to
        body = {"cursor": self.cursor, "to": end, "actions": actions, "snapshot": self.snapshot, **more}
        answer = await self.one.post(f"{self.path}/steps", body, **self.one.as_task(self.wish.allocation_id))
        if answer.status_code == 200:
            self.cursor = end
        return answer

    async def fail(self, reason: str, *, is_final: bool) -> None:
        body = {"reason": reason, "isFinal": is_final}
        answer = await self.one.post(f"{self.path}/failures", body, **self.one.as_task(self.wish.allocation_id))
        assert answer.status_code == 200, answer.text


def create(name: str, **hparams: Any) -> dict[str, Any]:
    return {"kind": "create", "requestId": name, "hparams": hparams, "seed": 1, "reason": f"wanted {name}"}


async def container(agent: FakeAgent, kind: str, *, but: str = "") -> DesiredContainer:
    """Waits for a container of that kind that is to run."""

    async def found() -> DesiredContainer | None:
        return next(
            (w for w in await agent.wish() if w.spec and w.spec.task_type == kind and w.allocation_id != but), None
        )

    return await eventually(found)


async def begun(one: Cluster, config: str = OWN, slots: int = 4) -> tuple[FakeAgent, Runner]:
    agent = await one.join(slots=slots)
    await one.create(config)
    wish = await container(agent, "SEARCH")
    await agent.run(wish)
    return agent, Runner(one, wish)


async def trials(one: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await one.get("/api/v1/experiments/1/trials"))["trials"]
    return sorted(found, key=lambda each: int(each["id"]))


async def ended(one: Cluster, state: str) -> str:
    """Waits until the experiment is in ``state``; returns why."""

    async def is_there() -> bool:
        return await one.state(1) == f"STATE_{state}"

    await eventually(is_there)
    found = (await one.get("/detent/events", target_type="experiment", target_id=1))["events"]
    return " | ".join(each["text"] for each in found)


async def test_a_task_of_the_owner_runs_the_method_and_its_actions_make_the_trials(one: Cluster):
    agent, runner = await begun(one)
    spec = runner.wish.spec
    assert spec is not None
    assert (spec.slots, spec.owner, spec.entrypoint) == ([], "admin", ["python3", "-m", "determined.exec.search"])
    start = (await runner.get()).json()
    assert (start["cursor"], start["snapshot"], start["isOver"]) == (-1, None, False)
    assert start["searcher"]["method"] == "my_search:MySearch"
    assert await trials(one) == []
    assert (await runner.step(create("a", x=0.1), create("b", x=0.2), to=0)).json() == {"isOver": False}
    assert [each["hparams"] for each in await trials(one)] == [{"x": 0.1, "depth": 3}, {"x": 0.2, "depth": 3}]
    first = await container(agent, "TRIAL")
    await agent.run(first)
    await report(one, first, 4, {"loss": 0.5})
    (event,) = await runner.events()
    name = first.allocation_id.split(".")[1]
    assert {key: event[key] for key in ("kind", "requestId", "steps", "time", "metric")} == {
        "kind": "validated",
        "requestId": name,
        "steps": 4,
        "time": 4.0,
        "metric": 0.5,
    }
    assert (await runner.step({"kind": "stop", "requestId": name, "reason": "0.5 is too much"})).status_code == 200
    own = await trial_of(one, first)
    shown = (await one.get(f"/detent/trials/{own}/decisions"))["decisions"]
    assert [(each["kind"], each["reason"]) for each in shown] == [
        ("created", f"wanted {name}"),
        ("stopped", "0.5 is too much"),
    ]
    assert (await runner.get()).json()["snapshot"] == {"seen": 0}
    await agent.exit(first)
    assert [(each["kind"], each["reason"]) for each in await runner.events()] == [("closed", "searcher_stopped")]
    done = await runner.step({"kind": "shutdown", "failed": False, "reason": "good enough"})
    assert done.json() == {"isOver": True}
    await agent.exit(runner.wish)
    await agent.exit(await container(agent, "TRIAL"))
    assert "good enough" in await ended(one, "COMPLETED")
