"""Tasks that build Python environments: started where a container waits for one, once, and refused at submission."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import PASSWORD, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.context import pack
from determined.link.messages import DesiredContainer
from determined.states import ContainerState
from determined_master.tasks import environment_repository

KEY = "0123456789abcdef"
CONFIG = """
name: example
entrypoint: python3 run.py
searcher: {name: single, metric: loss}
hyperparameters: {}
environment:
  environment_variables: [PIP_INDEX_URL=http://index/simple]
  venv: {requirements: requirements.txt}
"""


async def context(one: Cluster, folder: Path, text: str | None = "numpy\n") -> str:
    """The hash of a stored context with a list of requirements."""
    folder.mkdir()
    (folder / "run.py").write_text("pass\n")
    if text is not None:
        (folder / "requirements.txt").write_text(text)
    packed = pack(folder)
    one.master.blobs.keep_bytes(packed.data)
    return packed.hash


async def waits(agent: FakeAgent, wish: DesiredContainer, key: str = KEY) -> None:
    """The agent reports that the container waits for an environment; for none if ``key`` is empty."""
    report = agent.truth(wish, ContainerState.PULLING).model_copy(update={"needed_environment": key})
    await agent.cluster.master.agents.on_report(agent.id, [report])


async def build_on(agent: FakeAgent) -> DesiredContainer:
    async def found() -> DesiredContainer | None:
        return next((w for w in await agent.wish() if w.spec and w.spec.builds_environment), None)

    return await eventually(found)


async def live_builds(one: Cluster) -> list[Any]:
    async with one.master.database.read() as session:
        return list(await environment_repository.builds(session))


async def test_a_build_runs_on_the_agent_whose_container_waits(one: Cluster, tmp_path: Path):
    agents = [await one.join(name, slots=1) for name in ("one", "two")]
    digest = await context(one, tmp_path / "context")
    await one.create(CONFIG, contextHash=digest)

    async def placed() -> FakeAgent | None:
        for each in agents:
            if await each.wish():
                return each
        return None

    agent = await eventually(placed)
    (wish,) = await agent.wished()
    await waits(agent, wish)
    build = await build_on(agent)
    assert build.spec is not None
    assert (build.spec.builds_environment, build.spec.slots, build.spec.owner) == (KEY, [], "admin")
    assert build.spec.venv == {"requirements": "requirements.txt", "python": None}
    assert build.spec.context is not None
    assert build.spec.context.hash == digest
    assert build.spec.user_environment == ["PIP_INDEX_URL=http://index/simple"]
    shown = (await one.get(f"/api/v1/tasks/{build.spec.task_id}"))["task"]
    assert shown["taskType"] == "TASK_TYPE_GENERIC"
    # Reported again, or needed by a second container, it is built by the same task.
    await waits(agent, wish)
    assert len(await live_builds(one)) == 1
    assert not [w for each in agents if each is not agent for w in await each.wish()]
    await waits(agent, wish, "")
    await agent.exit(build)

    async def ended() -> bool:
        return not await live_builds(one)

    await eventually(ended)


async def test_a_build_that_nobody_waits_for_any_more_ends_before_it_began(one: Cluster, tmp_path: Path):
    agent = await one.join(slots=1)
    await one.create(CONFIG, contextHash=await context(one, tmp_path / "context"))
    (wish,) = await agent.wished()
    one.master.draining.set()  # nothing is placed
    await waits(agent, wish)

    async def builds(count: int) -> bool:
        return len(await live_builds(one)) == count

    async def one_build() -> bool:
        return await builds(1)

    async def none() -> bool:
        return await builds(0)

    await eventually(one_build)
    await waits(agent, wish, "")
    await eventually(none)


async def test_a_build_can_be_killed_by_its_owner_and_a_trial_is_no_such_task(one: Cluster, tmp_path: Path):
    agent = await one.join(slots=1)
    await one.create(CONFIG, contextHash=await context(one, tmp_path / "context"))
    (wish,) = await agent.wished()
    await waits(agent, wish)
    build = await build_on(agent)
    assert build.spec is not None
    assert wish.spec is not None
    assert (await one.post(f"/api/v1/tasks/{build.spec.task_id}/kill", {})).status_code == 200

    async def stopped() -> bool:
        found = next(each for each in await agent.wish() if each.container_id == build.container_id)
        return found.state == "stopped"

    await eventually(stopped)
    refused = await one.post(f"/api/v1/tasks/{wish.spec.task_id}/kill", {})
    assert (refused.status_code, "is a trial" in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "requirements.txt is not in the context"), ("\n-e .\n", "requirements.txt:2: . is a path")],
    ids=["missing", "path"],
)
async def test_a_list_that_cannot_be_used_is_refused_at_submission(
    one: Cluster, tmp_path: Path, text: str | None, message: str
):
    digest = await context(one, tmp_path / "context", text)
    for path, body in (
        ("/api/v1/experiments", {"config": CONFIG}),
        ("/api/v1/commands", {"config": {"entrypoint": ["true"], "environment": {"venv": {}}}}),
    ):
        answer = await one.post(path, {**body, "contextHash": digest})
        assert answer.status_code == 400, answer.text
        assert message in answer.text
    answer = await one.post("/api/v1/experiments", {"config": CONFIG})
    assert (answer.status_code, "is in no context" in answer.text) == (400, True)


async def test_lists_that_include_each_other_hold_up_no_sign_in(one: Cluster, tmp_path: Path):
    """Eight at once, of a size that is sent in no time, held up every sign-in for two minutes."""
    names = [f"r{number}.txt" for number in range(60)]
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "run.py").write_text("pass\n")
    for name in ("requirements.txt", *names):
        (folder / name).write_text("\n".join(f"-r {each}" for each in names))
    packed = pack(folder)
    one.master.blobs.keep_bytes(packed.data)
    body = {"config": CONFIG, "contextHash": packed.hash}
    submissions = [asyncio.create_task(one.client.post("/api/v1/experiments", json=body)) for _ in range(8)]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        signed_in = await one.client.post("/detent/sign-in", json={"username": "determined", "password": PASSWORD})
    assert signed_in.status_code == 200
    for submission in submissions:
        answer = await submission
        assert answer.status_code == 400
        assert "50 are allowed" in answer.text
