"""The log of a task ends with the sentence that tools made for Determined search for."""

import json

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState

WELL = "resources exited successfully with a zero exit code"
FAILED = "resources failed with non-zero exit code: 3"


async def log(one: Cluster, task_id: str) -> list[str]:
    answer = await one.client.get(f"/api/v1/tasks/{task_id}/logs")
    return [json.loads(line)["result"]["log"].removesuffix("\n") for line in answer.text.splitlines()]


async def ends_with(one: Cluster, wish: DesiredContainer, text: str) -> None:
    assert wish.spec is not None
    task_id = wish.spec.task_id

    async def has_ended() -> bool:
        lines = await log(one, task_id)
        return bool(lines) and lines[-1] == text

    await eventually(has_ended)
    assert (await log(one, task_id)).count(text) == 1


async def trial(one: Cluster, agent: FakeAgent) -> DesiredContainer:
    await one.create(CONFIG + "max_restarts: 0\n")
    (wish,) = await agent.wished()
    await agent.run(wish)
    return wish


async def command(one: Cluster, agent: FakeAgent) -> DesiredContainer:
    body = {"config": {"entrypoint": ["true"], "resources": {"slots": 1}}}
    assert (await one.post("/api/v1/commands", body)).status_code == 200
    (wish,) = await agent.wished()
    await agent.run(wish)
    return wish


@pytest.mark.parametrize("start", [trial, command])
@pytest.mark.parametrize(("code", "text"), [(0, WELL), (3, FAILED)])
async def test_the_log_ends_with_how_the_resources_exited(one, start, code: int, text: str):
    agent = await one.join()
    wish = await start(one, agent)
    await agent.exit(wish, code=code)
    await ends_with(one, wish, text)


@pytest.mark.parametrize("start", [trial, command])
@pytest.mark.parametrize(("code", "text"), [(0, WELL), (3, FAILED)])
async def test_the_sentence_follows_output_that_comes_after_the_end(one, start, code: int, text: str):
    agent = await one.join()
    wish = await start(one, agent)
    end = agent.truth(wish, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))
    await one.master.agents.on_report(agent.id, [end.model_copy(update={"output_done": False})])
    assert wish.spec is not None

    async def is_settled() -> bool:
        ended = (await one.get(f"/api/v1/tasks/{wish.spec.task_id}"))["task"]["endTime"]
        return ended is not None

    await eventually(is_settled)
    assert text not in await log(one, wish.spec.task_id)
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="exited", code=code))
    await ends_with(one, wish, text)


@pytest.mark.parametrize("start", [trial, command])
async def test_a_killed_task_says_so_in_the_sentence(one, start):
    agent = await one.join()
    wish = await start(one, agent)
    assert wish.spec is not None
    if start is trial:
        await one.post("/api/v1/experiments/1/kill")
    else:
        await one.post(f"/api/v1/commands/{wish.spec.task_id}/kill")
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await ends_with(one, wish, "resources failed with non-zero exit code: 137")


async def test_more_slots_than_there_are_is_an_unfulfillable_request(one: Cluster):
    await one.join(slots=1)
    refused = await one.client.post("/api/v1/experiments", json={"config": CONFIG + "resources: {slots_per_trial: 2}"})
    assert refused.status_code == 400
    assert "request unfulfillable: a trial needs 2 slots" in refused.text
    body = {"config": {"entrypoint": ["true"], "resources": {"slots": 2}}}
    refused = await one.post("/api/v1/commands", body)
    assert refused.status_code == 400
    assert "request unfulfillable: the command needs 2 slots" in refused.text
