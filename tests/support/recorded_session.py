"""Repeats a recorded session with a real Determined: the same calls, with the same events between them.

Experiment 1 completes, 2 is a search with three trials, 3 fails, 4 is paused and killed; a command is run.
``tests/support/keep_answers.py`` describes the source of the recorded calls.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.answer_shape import differences, shape_of, template_of
from tests.support.checkpoints import checkpoint_uuid, store_checkpoint
from tests.support.cluster import PASSWORD, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer, Hello, SlotFacts
from determined.states import ContainerState

RECORDED = Path(__file__).resolve().parents[1] / "contract" / "recorded_answers.json"
AGENT = "agent-1"
FAILING = {"name": "failing", "entrypoint": "python3 none.py", "max_restarts": 0, "hyperparameters": {"lr": 0.5}}
FAILING |= {"description": "d", "labels": ["a", "b"], "searcher": {"name": "single", "metric": "validation_loss"}}
LONG = FAILING | {"name": "long", "entrypoint": "python3 train.py", "hyperparameters": {"steps": 400}}


@dataclass
class Answered:
    """A recorded call and this master's answer to it."""

    noun: str
    recorded: dict[str, Any]
    status: int
    body: Any


@dataclass
class Session:
    """The repeated session. ``answered`` holds each recorded call after it was made."""

    cluster: Cluster
    agent: FakeAgent
    recorded: dict[str, list[dict[str, Any]]]
    answered: list[Answered] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    desired: dict[int, DesiredContainer] = field(default_factory=dict)
    """Containers by the number of their trial."""

    async def calls(self, noun: str, first: int = 0, end: int | None = None) -> None:
        for call in self.recorded[noun][first:end]:
            if isinstance(call["status"], int):
                await self._call(noun, call)

    async def _call(self, noun: str, call: dict[str, Any]) -> None:
        method, path = self._filled(call["call"]).split(" ")
        headers = {}
        if method == "GET" and path.endswith("/me") and call["status"] == 401:
            headers["Authorization"] = ""
        if path.startswith("/api/v1/users/6/password") or (method == "PATCH" and call["status"] == 403):
            headers["Authorization"] = f"Bearer {self.names['token_of_ada']}"
        request = {"json": self._filled(call["request"])} if "request" in call else {}
        query = self._filled(call.get("query"))
        if "metrics-stream" in path:
            query["periodSeconds"] = 0
        answer = await self.cluster.client.request(method, path, params=query, headers=headers, **request)
        self.cluster.client.cookies.clear()
        body: Any
        try:
            body = answer.json()
        except ValueError:
            body = [json.loads(line) for line in answer.text.splitlines() if line[:1] == "{"] or answer.text
        else:
            if "answer_lines" in call:
                body = [body]
        self.answered.append(Answered(noun, call, answer.status_code, body))

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, str):
            for name, known in self.names.items():
                value = value.replace(f"{{{name}}}", known)
        return value

    async def start(self, trial: int) -> None:
        """Waits until the master desires a container for this trial."""

        async def container_of_trial() -> DesiredContainer | None:
            desired = await self.agent.desired()
            of_trial = [w for w in desired if w.spec and w.spec.environment.get("DET_TRIAL_ID") == str(trial)]
            return of_trial[0] if of_trial else None

        self.desired[trial] = await eventually(container_of_trial)
        await self.agent.run(self.desired[trial])

    async def report(self, trial: int, steps: range) -> None:
        """Reports metrics at each step, a validation and a checkpoint every 5 steps, and one line of output per step."""
        desired = self.desired[trial]
        assert desired.spec is not None
        task = self.cluster.as_task(desired.allocation_id)
        run = int(desired.spec.environment["DET_TRIAL_RUN_ID"])
        for step in steps:
            groups = [("training", {"loss": 0.5 / step, "deep": {"a": 1}})]
            groups += [("validation", {"validation_loss": 0.5 / step})] if step % 5 == 0 else []
            for group, metrics in groups:
                report = {
                    "trialId": trial,
                    "trialRunId": run,
                    "stepsCompleted": step,
                    "metrics": {"avgMetrics": metrics},
                }
                await self._sent(f"/api/v1/trials/{trial}/metrics", {"group": group, "metrics": report}, task)
            await self.print_line(desired, f"step {step}\n")
            if step % 5 == 0:
                uuid = checkpoint_uuid(100 * trial + step)
                store_checkpoint(self.cluster.master.settings.data / "checkpoints", uuid, step)
                checkpoint = {"uuid": uuid, "taskId": desired.spec.task_id, "allocationId": desired.allocation_id}
                checkpoint |= {"resources": {"metadata.json": "27", "s.json": "9"}, "state": "STATE_COMPLETED"}
                checkpoint |= {"metadata": {"steps_completed": step}}
                await self._sent("/api/v1/checkpoints", checkpoint, task)

    async def print_line(self, desired: DesiredContainer, text: str) -> None:
        assert desired.spec is not None
        line = {"taskId": desired.spec.task_id, "agentId": AGENT, "containerId": desired.container_id, "log": text}
        line |= {"level": "LOG_LEVEL_INFO", "source": "task", "stdtype": "stdout"}
        await self._sent("/api/v1/task/logs", {"logs": [line]}, self.cluster.as_task(desired.allocation_id))

    async def _sent(self, path: str, body: Any, headers: dict[str, str]) -> None:
        answer = await self.cluster.post(path, body, **headers)
        assert answer.status_code == 200, answer.text

    async def end(self, trial: int, code: int = 0) -> None:
        await self.agent.exit(self.desired.pop(trial), code)

    async def is_in(self, experiment: int, state: str) -> None:
        async def reached() -> bool:
            return await self.cluster.state(experiment) == f"STATE_{state}"

        await eventually(reached)


async def repeat_session(cluster: Cluster) -> Session:
    """Makes all recorded calls in order."""
    now = datetime.now(UTC)
    slots = [SlotFacts(id=i, kind="cpu", brand="Artificial", uuid=f"slot-{i}") for i in range(2)]
    await cluster.master.agents.welcome(Hello(agent_id=AGENT, hostname="host", slots=slots))
    agent = FakeAgent(cluster, AGENT)
    cluster.master.own_log.append((1, 1.0, "INFO", "a line of the master's own"))
    session = Session(cluster, agent, json.loads(RECORDED.read_text()))
    session.names |= {f"{name}": f"{now + timedelta(days=days):%Y-%m-%d}" for name, days in _DAYS.items()}
    session.names |= {"password": PASSWORD, "project": "1", "workspace": "1"}
    await _users(session)
    for noun in ("workspaces", "projects", "groups-and-roles", "tokens", "templates", "config-policies", "webhooks"):
        await session.calls(noun)
    await _first_experiment(session)
    await _searches(session)
    await _queue(session)
    await _commands(session)
    await _continued(session)
    return session


_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


async def _users(session: Session) -> None:
    cluster = session.cluster
    admin = cluster.client.headers["Authorization"]
    login = {"username": "admin", "password": PASSWORD}
    cluster.client.headers["Authorization"] = (
        f"Bearer {(await cluster.post('/api/v1/auth/login', login)).json()['token']}"
    )
    cluster.client.cookies.clear()
    await session.calls("auth")  # signs out
    cluster.client.headers["Authorization"] = admin
    await session.calls("master")
    await session.calls("users", 0, 5)
    for username in ("ada", "eve", "bob"):
        await cluster.post("/api/v1/users", {"user": {"username": username}, "password": PASSWORD})
    ada = next(u["id"] for u in (await cluster.get("/api/v1/users"))["users"] if u["username"] == "ada")
    password = {"password": PASSWORD, "isHashed": False}
    assert (await cluster.client.patch(f"/api/v1/users/{ada}", json=password)).status_code == 200
    signed_in = await cluster.post("/api/v1/auth/login", {"username": "ada", "password": PASSWORD})
    session.names["token_of_ada"] = signed_in.json()["token"]
    cluster.client.cookies.clear()
    await session.calls("users", 5)


async def _first_experiment(session: Session) -> None:
    await session.calls("experiments", 0, 1)
    await session.start(1)
    task = session.desired[1].spec
    assert task is not None
    session.names |= {"task": task.task_id, "first_checkpoint": checkpoint_uuid(105)}
    session.names |= {"last_checkpoint": checkpoint_uuid(110)}
    accelerators = {"containerId": session.desired[1].container_id, "acceleratorType": "cpu", "nodeName": AGENT}
    path = f"/api/v1/allocations/{session.desired[1].allocation_id}/acceleratorData"
    await session.cluster.post(path, {"acceleratorData": accelerators}, **session.cluster.as_task(task.task_id + ".1"))
    await session.report(1, range(1, 11))
    await session.end(1)
    await session.is_in(1, "COMPLETED")

    async def first_is_deleted() -> bool:
        answer = await session.cluster.get(f"/api/v1/checkpoints/{checkpoint_uuid(105)}")
        return bool(answer["checkpoint"]["state"] == "STATE_DELETED")

    await eventually(first_is_deleted)


async def _searches(session: Session) -> None:
    cluster = session.cluster
    await cluster.post(f"/api/v1/agents/{AGENT}/disable", {})
    await session.calls("experiments", 1, 6)
    files = session.recorded["experiments"][0]["request"]["modelDefinition"]
    await cluster.create(json.dumps(FAILING), modelDefinition=files)
    await session.calls("experiments", 6, 13)
    await session.calls("experiments", 14, 40)
    await session.calls("models")
    await cluster.post(f"/api/v1/agents/{AGENT}/enable", {})
    for trial in (2, 3):
        await session.start(trial)
        await session.report(trial, range(1, 11))

    async def is_indexed() -> bool:
        results = (await cluster.post("/api/v1/experiments-search", {})).json()["experiments"]
        return all(result["bestTrial"]["summaryMetrics"] for result in results if result["experiment"]["id"] in (1, 2))

    await eventually(is_indexed)
    await session.calls("experiments", 13, 14)
    await session.calls("trials", 0, 22)
    for trial in (2, 3):
        await session.end(trial)


async def _queue(session: Session) -> None:
    cluster = session.cluster
    await session.start(4)
    session.names["allocation"] = session.desired[4].allocation_id
    await session.start(5)
    await session.end(5, code=2)
    await session.is_in(3, "ERROR")
    experiment = await cluster.create(
        json.dumps(LONG), modelDefinition=session.recorded["experiments"][0]["request"]["modelDefinition"]
    )
    session.names["job"] = (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["jobId"]
    await session.start(6)
    for noun in ("jobs", "tasks", "agents"):
        await session.calls(noun)
    await session.calls("trials", 22)
    await session.report(4, range(1, 11))
    await session.end(4)
    await session.is_in(2, "COMPLETED")
    await session.calls("experiments", 40, 41)
    desired = session.desired[6]
    await cluster.post(
        f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption", **cluster.as_task(desired.allocation_id)
    )
    await session.end(6)

    async def is_free() -> bool:
        return not await session.agent.desired()

    await eventually(is_free)
    await session.calls("experiments", 41, 45)
    await session.is_in(4, "CANCELED")
    await session.calls("experiments", 45, 46)
    await session.calls("runs")


async def _commands(session: Session) -> None:
    desired = await _launched(session, "command")
    command = session.names["command"]
    await session.print_line(desired, "one\n")
    await session.calls("commands", 1, 9)
    await session.agent.exit(desired)

    async def has_ended() -> bool:
        command_now = (await session.cluster.get(f"/api/v1/commands/{command}"))["command"]
        return bool(command_now["state"] == "STATE_TERMINATED")

    await eventually(has_ended)
    await session.calls("commands", 9)
    await session.calls("notebooks")
    await _shells(session)
    for noun in ("tensorboards", "generic-tasks", "unmanaged"):
        await session.calls(noun)


async def _launched(session: Session, noun: str) -> DesiredContainer:
    """Makes the first call about a noun, which launches a task, and runs the task."""
    await session.calls(f"{noun}s", 0, 1)
    task = session.names[noun] = session.answered[-1].body[noun]["id"]

    async def placed() -> DesiredContainer | None:
        return next((w for w in await session.agent.desired() if w.allocation_id.startswith(task)), None)

    desired = await eventually(placed)
    await session.agent.run(desired)
    return desired


async def _shells(session: Session) -> None:
    desired = await _launched(session, "shell")
    shell = session.names["shell"]
    await session.print_line(desired, "one\n")
    await session.calls("shells", 1, 9)
    await session.agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))

    async def has_ended() -> bool:
        return bool((await session.cluster.get(f"/api/v1/shells/{shell}"))["shell"]["state"] == "STATE_TERMINATED")

    await eventually(has_ended)
    await session.calls("shells", 9)


async def _continued(session: Session) -> None:
    await session.calls("experiments", 46, 47)
    await session.start(1)
    await session.report(1, range(11, 13))
    await session.end(1)
    await session.is_in(1, "COMPLETED")
    await session.calls("checkpoints")
    await session.calls("experiments-bulk", 0, 8)
    await session.calls("experiments", 47, 48)

    async def is_gone() -> bool:
        return (await session.cluster.client.get("/api/v1/experiments/3")).status_code == 404

    await eventually(is_gone)
    await session.calls("experiments", 48)
    await session.calls("experiments-bulk", 8)


def compared(session: Session) -> Iterator[tuple[Answered, list[str]]]:
    """Yields each call that was made, with the differences between its answers."""
    for created in session.answered:
        call = template_of(created.recorded["call"])
        theirs = created.recorded["status"]
        if created.status != theirs:
            yield created, [f"{call}: status {theirs} → {created.status}"]
            continue
        if "answer_lines" in created.recorded:
            yield created, [*differences(call, created.recorded["answer_lines"], shape_of(created.body))]
        else:
            yield created, [*differences(call, created.recorded.get("answer"), shape_of(created.body))]
