"""Tasks that build Python environments: on the agent that lacks one, once, and checked at submission."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import PASSWORD, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.context import pack
from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.tasks import environment_repository

pytestmark = pytest.mark.budget(10, "waits for loops of the master")

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
PLAIN = CONFIG.partition("environment:")[0]


async def store_context(cluster: Cluster, folder: Path, text: str | None = "numpy\n") -> str:
    """Stores a context with a list of requirements; returns its hash."""
    folder.mkdir()
    (folder / "run.py").write_text("pass\n")
    if text is not None:
        (folder / "requirements.txt").write_text(text)
    packed = pack(folder)
    cluster.master.blobs.keep_bytes(packed.data)
    return packed.hash


async def report_lack(agent: FakeAgent, desired: DesiredContainer, key: str = KEY) -> None:
    """Reports that the container lacks its environment, and ends it when the master stops it."""
    report = agent.report_of(desired, ContainerState.PULLING).model_copy(update={"needed_environment": key})
    await agent.cluster.master.agents.on_report(agent.id, [report])
    await wait_for_stop(agent, desired)
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))


async def wait_for_stop(agent: FakeAgent, desired: DesiredContainer) -> None:
    async def wanted() -> bool:
        return any(d.container_id == desired.container_id and d.state == "stopped" for d in await agent.desired())

    await eventually(wanted)


async def build_on(agent: FakeAgent) -> DesiredContainer:
    async def build() -> DesiredContainer | None:
        return next((w for w in await agent.desired() if w.spec and w.spec.builds_environment), None)

    return await eventually(build)


async def trial_on(agent: FakeAgent, trial_id: int) -> DesiredContainer:
    async def container() -> DesiredContainer | None:
        wanted = [
            w for w in await agent.desired() if w.spec and w.spec.environment.get("DET_TRIAL_ID") == str(trial_id)
        ]
        return wanted[0] if wanted else None

    return await eventually(container)


async def live_builds(cluster: Cluster) -> list[str]:
    async with cluster.master.database.read() as session:
        return list((await environment_repository.builds(session)).values())


async def status(cluster: Cluster, experiment_id: int = 1) -> Any:
    return await cluster.get(f"/detent/experiments/{experiment_id}/status")


async def reaches(cluster: Cluster, state: str, experiment_id: int = 1) -> None:
    async def in_state() -> bool:
        return bool((await status(cluster, experiment_id))["state"] == f"STATE_{state}")

    await eventually(in_state)


async def waiting_trial(cluster: Cluster, tmp_path: Path) -> tuple[FakeAgent, DesiredContainer]:
    """Returns an agent with one slot, and the build for which the trial of experiment 1 waits."""
    agent = await cluster.join(slots=1)
    await cluster.create(CONFIG, contextHash=await store_context(cluster, tmp_path / "context"))
    await report_lack(agent, await trial_on(agent, 1))
    build = await build_on(agent)
    await reaches(cluster, "BUILDING_ENVIRONMENT")
    return agent, build


async def test_a_build_runs_on_the_agent_that_lacks_the_environment(cluster: Cluster, tmp_path: Path):
    agents = [await cluster.join(name, slots=1) for name in ("one", "two")]
    digest = await store_context(cluster, tmp_path / "context")
    await cluster.create(CONFIG, contextHash=digest)

    async def placed() -> FakeAgent | None:
        for each in agents:
            if await each.desired():
                return each
        return None

    agent = await eventually(placed)
    await report_lack(agent, await trial_on(agent, 1))
    build = await build_on(agent)
    assert build.spec is not None
    assert (build.spec.builds_environment, build.spec.slots, build.spec.owner) == (KEY, [], "admin")
    assert build.spec.venv == {"requirements": "requirements.txt", "python": None}
    assert build.spec.context is not None
    assert build.spec.context.hash == digest
    assert build.spec.user_environment == ["PIP_INDEX_URL=http://index/simple"]
    task = (await cluster.get(f"/api/v1/tasks/{build.spec.task_id}"))["task"]
    assert task["taskType"] == "TASK_TYPE_GENERIC"
    assert len(await live_builds(cluster)) == 1
    assert not [w for each in agents if each is not agent for w in await each.desired()]


async def test_a_trial_holds_no_slots_while_its_environment_is_built(cluster: Cluster, tmp_path: Path):
    agent, build = await waiting_trial(cluster, tmp_path)
    await cluster.create(PLAIN)
    other = await trial_on(agent, 2)  # this trial has the only slot
    await agent.run(other)
    await agent.exit(build)
    await reaches(cluster, "QUEUED")
    await agent.exit(other)
    following = await trial_on(agent, 1)
    assert following.spec is not None
    assert following.spec.built_environments == [(agent.id, KEY)]
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert trial["restarts"] == 0
    lines = [line["text"] for line in (await cluster.get("/detent/trials/1/logs"))["lines"]]
    assert any("is built by task" in line for line in lines)
    assert not any("resources failed" in line for line in lines)


async def test_the_last_line_of_the_build_is_shown_with_the_state(cluster: Cluster, tmp_path: Path):
    agent, build = await waiting_trial(cluster, tmp_path)
    assert build.spec is not None
    build_id = build.spec.task_id
    lines = {"logs": [{"taskId": build_id, "log": text} for text in ("Collecting numpy", "Downloading numpy.whl")]}
    (await cluster.post("/api/v1/task/logs", lines)).raise_for_status()
    text = f"requirements.txt on agent {agent.id}: Downloading numpy.whl"
    current = await status(cluster)
    assert current["text"] == f"building environment: {text}"
    trial = current["trials"][0]
    assert (trial["state"], trial["waiting"], trial["buildTaskId"]) == ("STATE_BUILDING_ENVIRONMENT", text, build_id)
    assert (await cluster.get("/detent/trials/1/progress"))["waiting"] == text
    experiment = (await cluster.get("/api/v1/experiments/1"))["experiment"]
    assert (experiment["state"], experiment["displayState"]) == ("STATE_QUEUED", "STATE_BUILDING_ENVIRONMENT")
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert (trial["state"], trial["displayState"]) == ("STATE_QUEUED", "STATE_BUILDING_ENVIRONMENT")
    condition = {"kind": "field", "columnName": "state", "operator": "=", "value": "building environment"}
    where = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [condition]}})
    answer = await cluster.post("/detent/experiments/search/ids", {"filter": where})
    assert answer.json()["ids"] == [1]


@pytest.mark.parametrize("action", ["kill", "pause"])
async def test_a_build_ends_when_nobody_waits_for_it_any_more(cluster: Cluster, tmp_path: Path, action: str):
    agent, build = await waiting_trial(cluster, tmp_path)
    await agent.run(build)
    assert (await cluster.post(f"/api/v1/experiments/1/{action}", {})).status_code == 200
    await wait_for_stop(agent, build)


async def test_a_build_goes_on_while_another_trial_waits_for_it(cluster: Cluster, tmp_path: Path):
    agent, build = await waiting_trial(cluster, tmp_path)
    await cluster.create(CONFIG, contextHash=await store_context(cluster, tmp_path / "again"))
    await report_lack(agent, await trial_on(agent, 2))
    await reaches(cluster, "BUILDING_ENVIRONMENT", 2)
    await cluster.post("/api/v1/experiments/1/kill", {})
    await reaches(cluster, "CANCELED")
    assert len(await live_builds(cluster)) == 1
    await cluster.post("/api/v1/experiments/2/kill", {})
    await wait_for_stop(agent, build)


async def test_a_trial_goes_to_another_agent_when_the_one_that_builds_is_disabled(cluster: Cluster, tmp_path: Path):
    agent, build = await waiting_trial(cluster, tmp_path)
    await agent.run(build)
    other = await cluster.join("other", slots=1)
    assert (await cluster.post(f"/api/v1/agents/{agent.id}/disable", {"drain": True})).status_code == 200
    assert await trial_on(other, 1)
    await wait_for_stop(agent, build)


async def test_a_command_waits_for_a_build_without_an_attempt(cluster: Cluster, tmp_path: Path):
    agent = await cluster.join(slots=1)
    body = {"config": {"entrypoint": ["true"], "environment": {"venv": {}}}}
    body |= {"contextHash": await store_context(cluster, tmp_path / "context")}
    command = (await cluster.post("/api/v1/commands", body)).json()["command"]["id"]
    (desired,) = await agent.wait_for_desired()
    await report_lack(agent, desired)
    build = await build_on(agent)
    assert [d.allocation_id for d in await agent.desired()] == [build.allocation_id]
    await agent.exit(build)

    async def following() -> DesiredContainer | None:
        return next((d for d in await agent.desired() if d.allocation_id == f"{command}.2"), None)

    assert (await eventually(following)).spec is not None


async def test_a_build_can_be_killed_by_its_owner_but_the_task_of_a_trial_cannot(cluster: Cluster, tmp_path: Path):
    agent, build = await waiting_trial(cluster, tmp_path)
    assert build.spec is not None
    assert (await cluster.post(f"/api/v1/tasks/{build.spec.task_id}/kill", {})).status_code == 200
    await wait_for_stop(agent, build)
    task_id = (await cluster.get("/api/v1/trials/1"))["trial"]["taskId"]
    refused = await cluster.post(f"/api/v1/tasks/{task_id}/kill", {})
    assert (refused.status_code, "is a trial" in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "requirements.txt is not in the context"), ("\n-e .\n", "requirements.txt:2: . is a path")],
    ids=["missing", "path"],
)
async def test_a_requirements_file_that_cannot_be_used_is_refused_at_submission(
    cluster: Cluster, tmp_path: Path, text: str | None, message: str
):
    digest = await store_context(cluster, tmp_path / "context", text)
    for path, body in (
        ("/api/v1/experiments", {"config": CONFIG}),
        ("/api/v1/commands", {"config": {"entrypoint": ["true"], "environment": {"venv": {}}}}),
    ):
        answer = await cluster.post(path, {**body, "contextHash": digest})
        assert answer.status_code == 400, answer.text
        assert message in answer.text
    answer = await cluster.post("/api/v1/experiments", {"config": CONFIG})
    assert (answer.status_code, "is in no context" in answer.text) == (400, True)


async def test_requirements_files_that_include_each_other_hold_up_no_sign_in(cluster: Cluster, tmp_path: Path):
    """Without a limit on includes, eight such submissions hold up every sign-in for two minutes."""
    names = [f"r{number}.txt" for number in range(60)]
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "run.py").write_text("pass\n")
    for name in ("requirements.txt", *names):
        (folder / name).write_text("\n".join(f"-r {each}" for each in names))
    packed = pack(folder)
    cluster.master.blobs.keep_bytes(packed.data)
    body = {"config": CONFIG, "contextHash": packed.hash}
    submissions = [asyncio.create_task(cluster.client.post("/api/v1/experiments", json=body)) for _ in range(8)]
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        signed_in = await cluster.client.post("/detent/sign-in", json={"username": "determined", "password": PASSWORD})
    assert signed_in.status_code == 200
    for submission in submissions:
        answer = await submission
        assert answer.status_code == 400
        assert "50 are allowed" in answer.text
