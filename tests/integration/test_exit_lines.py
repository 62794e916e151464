"""The log of a task ends with the sentence that tools made for Determined search for."""

import json

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState

SUCCEEDED = "resources exited successfully with a zero exit code"
FAILED = "resources failed with non-zero exit code: 3"


async def log(cluster: Cluster, task_id: str) -> list[str]:
    answer = await cluster.client.get(f"/api/v1/tasks/{task_id}/logs")
    return [json.loads(line)["result"]["log"].removesuffix("\n") for line in answer.text.splitlines()]


async def ends_with(cluster: Cluster, desired: DesiredContainer, text: str) -> None:
    assert desired.spec is not None
    task_id = desired.spec.task_id

    async def has_ended() -> bool:
        lines = await log(cluster, task_id)
        return bool(lines) and lines[-1] == text

    await eventually(has_ended)
    assert (await log(cluster, task_id)).count(text) == 1


async def trial(cluster: Cluster, agent: FakeAgent) -> DesiredContainer:
    await cluster.create(CONFIG + "max_restarts: 0\n")
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return desired


async def command(cluster: Cluster, agent: FakeAgent) -> DesiredContainer:
    body = {"config": {"entrypoint": ["true"], "resources": {"slots": 1}}}
    assert (await cluster.post("/api/v1/commands", body)).status_code == 200
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return desired


@pytest.mark.parametrize("start", [trial, command])
@pytest.mark.parametrize(("code", "text"), [(0, SUCCEEDED), (3, FAILED)])
async def test_the_log_ends_with_the_sentence_about_the_exit_code(cluster, start, code: int, text: str):
    agent = await cluster.join()
    desired = await start(cluster, agent)
    await agent.exit(desired, code=code)
    await ends_with(cluster, desired, text)


@pytest.mark.parametrize("start", [trial, command])
@pytest.mark.parametrize(("code", "text"), [(0, SUCCEEDED), (3, FAILED)])
async def test_the_sentence_follows_output_that_comes_after_the_end(cluster, start, code: int, text: str):
    agent = await cluster.join()
    desired = await start(cluster, agent)
    end = agent.report_of(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))
    await cluster.master.agents.on_report(agent.id, [end.model_copy(update={"output_done": False})])
    assert desired.spec is not None

    async def is_settled() -> bool:
        ended = (await cluster.get(f"/api/v1/tasks/{desired.spec.task_id}"))["task"]["endTime"]
        return ended is not None

    await eventually(is_settled)
    assert text not in await log(cluster, desired.spec.task_id)
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))
    await ends_with(cluster, desired, text)


@pytest.mark.parametrize("start", [trial, command])
async def test_the_log_of_a_killed_task_ends_with_exit_code_137(cluster, start):
    agent = await cluster.join()
    desired = await start(cluster, agent)
    assert desired.spec is not None
    if start is trial:
        await cluster.post("/api/v1/experiments/1/kill")
    else:
        await cluster.post(f"/api/v1/commands/{desired.spec.task_id}/kill")
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await ends_with(cluster, desired, "resources failed with non-zero exit code: 137")


async def test_more_slots_than_there_are_is_an_unfulfillable_request(cluster: Cluster):
    await cluster.join(slots=1)
    refused = await cluster.client.post(
        "/api/v1/experiments", json={"config": CONFIG + "resources: {slots_per_trial: 2}"}
    )
    assert refused.status_code == 400
    assert "request unfulfillable: a trial needs 2 slots" in refused.text
    body = {"config": {"entrypoint": ["true"], "resources": {"slots": 2}}}
    refused = await cluster.post("/api/v1/commands", body)
    assert refused.status_code == 400
    assert "request unfulfillable: the command needs 2 slots" in refused.text
