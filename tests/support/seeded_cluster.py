"""A cluster with at least one object of every kind."""

from dataclasses import dataclass
from typing import Any

from tests.support.cluster import Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer

FILE = {"path": "run.py", "type": 48, "content": "cGFzcwo=", "mode": 420, "mtime": "1", "uid": 0, "gid": 0}
CHECKPOINT = "7f6d4a0e-8a54-4a86-a47b-3a3d1f0a4f2b"


@dataclass
class SeededObjects:
    """Ids of the running trial and the objects around it, by the parameter names of paths and bodies."""

    played_agent: FakeAgent
    desired: DesiredContainer
    experiment: int
    trial: int
    task: str
    allocation: str
    container: str
    command: str
    """An ended command without processes."""
    shell: str
    """An ended shell without processes."""
    job: str
    """The job of the experiment."""
    checkpoint: str = CHECKPOINT
    agent: str = "one"
    user: int = 1
    username: str = "admin"

    async def end(self) -> None:
        """Reports the exit of the container, as its agent would."""
        await self.played_agent.exit(self.desired)

    def for_path(self, name: str) -> str:
        """Returns the value for ``{name}`` in a path template."""
        values: dict[str, Any] = {
            "experimentId": self.experiment,
            "experiment_id": self.experiment,
            "id": self.trial,
            "trialId": self.trial,
            "runId": self.trial,
            "taskId": self.task,
            "allocationId": self.allocation,
            "resourcesId": self.container,
            "checkpointUuid": self.checkpoint,
            "agentId": self.agent,
            "slotId": "0",
            "commandId": self.command,
            "shellId": self.shell,
            "userId": self.user,
            "username": self.username,
        }
        return str(values[name])


async def seed_cluster(cluster: Cluster) -> SeededObjects:
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(modelDefinition=[FILE])
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    assert desired.spec is not None
    task = desired.spec.task_id
    headers = cluster.as_task(desired.allocation_id)
    metrics = {"avgMetrics": {"loss": 0.5, "odd": "NaN"}, "batchMetrics": [{"loss": 0.5}]}
    for group in ("training", "validation"):
        report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 2, "metrics": metrics}
        answer = await cluster.post("/api/v1/trials/1/metrics", {"group": group, "metrics": report}, **headers)
        assert answer.status_code == 200, answer.text
    checkpoint = {
        "uuid": CHECKPOINT,
        "taskId": task,
        "allocationId": desired.allocation_id,
        "metadata": {"steps_completed": 2},
        "resources": {"weights": "3"},
        "state": "STATE_COMPLETED",
        "training": {},
    }
    assert (await cluster.post("/api/v1/checkpoints", checkpoint, **headers)).status_code == 200
    line = {"taskId": task, "log": "hello", "level": "LOG_LEVEL_INFO", "rankId": 0, "stdtype": "stdout"}
    assert (await cluster.post("/api/v1/task/logs", {"logs": [line]}, **headers)).status_code == 200
    cluster.master.own_log.append((1, 1.0, "INFO", "a line of the master's own"))
    command = await _ended(cluster, "command", {"entrypoint": ["true"]})
    shell = await _ended(cluster, "shell", {})
    job = (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["jobId"]
    return SeededObjects(
        agent, desired, experiment, 1, task, desired.allocation_id, desired.container_id, command, shell, job
    )


async def _ended(cluster: Cluster, kind: str, config: dict[str, Any]) -> str:
    """Launches a command or a service that has to wait for slots, kills it, and waits for its end."""
    path = f"/api/v1/{kind}s"
    answer = await cluster.post(path, {"config": {**config, "resources": {"slots": 2}}})
    assert answer.status_code == 200, answer.text
    task = str(answer.json()[kind]["id"])
    assert (await cluster.post(f"{path}/{task}/kill", {})).status_code == 200

    async def has_ended() -> bool:
        return bool((await cluster.get(f"{path}/{task}"))[kind]["state"] == "STATE_TERMINATED")

    await eventually(has_ended)
    return task
