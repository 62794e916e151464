"""The cause of a failure is stored on the attempt and shown wherever the trial is shown."""

import json

import pytest
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer, Hello, RankExit, SlotFacts
from determined.states import ContainerState
from determined_master.db.models import LogRow

CAUSE = "rank 3 on node-2: ValueError: bad shape (train.py:3, exit code 1)"
LINES = ["Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: bad shape"]


async def fail(agent: FakeAgent, lines: list[str] = LINES) -> DesiredContainer:
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    rank = RankExit(rank=3, code=1, host="node-2", last_lines=lines, time=1.0)
    message = "\n".join(["rank 3 on node-2 exited with code 1:", *lines])
    exit_ = ContainerExit(kind="exited", code=1, ranks=[rank], message=message)
    await agent.send_report(desired, ContainerState.TERMINATED, exit_)
    return desired


async def reaches(cluster: Cluster, experiment: int, state: str) -> None:
    async def is_there() -> bool:
        return await cluster.state(experiment) == state

    await eventually(is_there)


async def log(cluster: Cluster) -> list[str]:
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    return [json.loads(line)["result"]["log"].removesuffix("\n") for line in answer.text.splitlines()]


@pytest.fixture
async def failed(cluster: Cluster) -> Cluster:
    """Returns a cluster whose experiment 1 failed twice with max_restarts 1, with a pause in between."""
    agent = await cluster.join()
    await cluster.create(CONFIG + "max_restarts: 1\n")
    await fail(agent)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    await cluster.post("/api/v1/experiments/1/pause")
    signals = f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption"
    await cluster.post(signals, {}, **cluster.as_task(desired.allocation_id))
    await agent.exit(desired)
    await reaches(cluster, 1, "STATE_PAUSED")
    await cluster.post("/api/v1/experiments/1/activate")
    await fail(agent)
    await reaches(cluster, 1, "STATE_ERROR")
    return cluster


async def test_each_attempt_has_its_own_reason(failed: Cluster):
    attempts = (await failed.get("/detent/trials/1/attempts"))["attempts"]
    assert [(each["reason"], each["failure"]) for each in attempts] == [
        ("errored", CAUSE),
        ("preempted", None),
        ("errored", CAUSE),
    ]
    assert attempts[1]["message"] == "paused by admin"


async def test_the_log_counts_attempts_without_pauses(failed: Cluster):
    lines = [line for line in await log(failed) if line.startswith("attempt ")]
    assert lines == [
        f"attempt 1 of 2 failed: {CAUSE}; attempt 2 of 2 follows",
        f"attempt 2 of 2 failed: {CAUSE}; no restart is left (max_restarts: 1)",
    ]


async def test_status_and_timeline_show_the_failure(failed: Cluster):
    status = await failed.get("/detent/experiments/1/status")
    failure = status["failure"]
    assert (failure["trialId"], failure["runId"], failure["text"]) == (1, 3, CAUSE)
    assert failure["allocationId"].endswith(".3")
    assert status["text"] == f"failed: trial 1: out of restarts after 2 attempts: {CAUSE}"
    (trial,) = status["trials"]
    assert (trial["attempt"], trial["maxAttempts"]) == (2, 2)
    assert trial["failure"] == failure | {"logLine": None}
    async with failed.master.database.read() as session:
        line = await session.get_one(LogRow, failure["logLine"])
    assert line.log.startswith(f"attempt 2 of 2 failed: {CAUSE}")
    timeline = await failed.get("/detent/experiments/1/timeline")
    assert timeline["segments"][-1]["reason"] == CAUSE
    assert [m["text"] for m in timeline["marks"] if m["kind"] == "ended"] == ["failed: out of restarts"]


@pytest.mark.parametrize(
    ("quoted", "stderr"),
    [
        ("no data in /data; see the wiki: (page 3)", "no data in /data; see the wiki: (page 3)"),
        ("\x1b[31m[rank=3] no data\x1b[0m", "[rank=3] no data"),
        ("x" * 900, "x" * 900),
    ],
    ids=["plain", "coloured", "long"],
)
async def test_the_first_error_is_the_line_that_the_cause_quotes_if_none_looks_like_an_error(
    cluster: Cluster, quoted: str, stderr: str
):
    agent = await cluster.join()
    await cluster.create(CONFIG + "max_restarts: 0\n")
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    for text in ("no dat", "x" * 10, quoted, "loss 0.5"):
        line = {
            "taskId": desired.allocation_id.rpartition(".")[0],
            "allocationId": desired.allocation_id,
            "log": text,
            "source": "task",
        }
        assert (await cluster.post("/api/v1/task/logs", {"logs": [line]})).status_code == 200
    rank = RankExit(rank=3, code=1, host="node-2", last_lines=["loss 0.5"], last_stderr=stderr, time=1.0)
    await agent.send_report(
        desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=1, ranks=[rank], message="x")
    )
    await reaches(cluster, 1, "STATE_ERROR")
    for query in ({}, {"allocationId": desired.allocation_id}):
        assert (await cluster.get("/detent/trials/1/logs/first-error", **query))["line"]["text"] == quoted
    failure = (await cluster.get("/detent/experiments/1/status"))["failure"]
    async with cluster.master.database.read() as session:
        assert (await session.get_one(LogRow, failure["logLine"])).log == quoted


async def search(cluster: Cluster, text: str, operator: str = "contains") -> list[dict]:
    field = {"kind": "field", "columnName": "failure", "operator": operator, "value": text}
    group = {"kind": "group", "conjunction": "and", "children": [field]}
    body = {"filter": json.dumps({"filterGroup": group, "showArchived": False})}
    answer = await cluster.post("/detent/experiments/search", body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["experiments"])


async def test_lists_show_the_failure_and_are_filtered_and_grouped_by_it(failed: Cluster):
    async def matches() -> list[dict]:
        return await search(failed, "bad shape")

    (row,) = await eventually(matches)
    assert (row["id"], row["failure"]) == (1, CAUSE)
    assert await search(failed, "another") == []
    assert await search(failed, "", "isEmpty") == []
    groups = (await failed.post("/detent/experiments/search/groups", {"by": "failure"})).json()["groups"]
    assert groups == [{"value": CAUSE, "count": 1}]
    columns = (await failed.get("/detent/columns", query="failure"))["columns"]
    assert [(each["column"], each["type"]) for each in columns] == [("failure", "text")]
    (listed,) = (await failed.get("/api/v1/experiments"))["experiments"]
    assert listed["failure"] == CAUSE
    assert (await failed.get("/api/v1/trials/1"))["trial"]["failure"] == CAUSE


async def test_secrets_of_the_configuration_are_masked(cluster: Cluster):
    agent = await cluster.join()
    secret = "environment: {environment_variables: [API_TOKEN=hunter2222]}\nmax_restarts: 0\n"
    await cluster.create(CONFIG + secret)
    await fail(agent, ["KeyError: 'hunter2222'"])
    await reaches(cluster, 1, "STATE_ERROR")
    text = (await cluster.get("/detent/experiments/1/status"))["failure"]["text"]
    assert text == "rank 3 on node-2: KeyError: '********' (exit code 1)"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["pause"], "paused by admin"),
        (["cancel"], "canceled by admin"),
        (["kill"], "killed by admin"),
        (["pause", "kill"], "killed by admin"),
    ],
)
async def test_a_requested_end_names_the_user_who_requested_it(cluster: Cluster, steps: list[str], message: str):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    for step in steps:
        await cluster.post(f"/api/v1/experiments/1/{step}")
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def ended() -> list[dict]:
        attempts = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
        return [each for each in attempts if each["endedAt"]]

    (attempt,) = await eventually(ended)
    assert (attempt["reason"], attempt["message"], attempt["failure"]) == ("killed", message, None)


async def test_a_trial_that_no_agent_can_hold_waits_and_names_the_reason(cluster: Cluster):
    experiment = await cluster.create(CONFIG + "resources: {slots_per_trial: 4}\n")
    await cluster.join()

    async def is_explained() -> bool:
        waiting = (await cluster.get("/detent/trials/1/progress"))["waiting"] or ""
        return waiting.startswith("needs 4 slots, but the only agent of pool 'default' has 1")

    await eventually(is_explained)
    large = await cluster.join("large", slots=4)
    await large.wait_for_desired()
    assert await cluster.state(experiment) != "STATE_ERROR"


async def test_the_message_of_an_attempt_names_its_disabled_agent(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    await cluster.post("/api/v1/agents/one/disable", {"drain": False})
    (attempt,) = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
    assert attempt["message"] == "agent one was disabled by admin"


@pytest.mark.parametrize(
    ("runtime", "environment", "image"),
    [
        ("docker", "image: {cpu: lab/cpu:1, cuda: lab/cuda:1}", "lab/cuda:1"),
        ("podman", "force_pull_image: true", ""),
        ("process", "image: lab/train:1", ""),
    ],
)
async def test_an_attempt_names_the_runtime_and_image_of_each_container(
    cluster: Cluster, runtime: str, environment: str, image: str
):
    slots = [SlotFacts(id=0, type="cuda", uuid="GPU-1")]
    await cluster.master.agents.welcome(Hello(agent_id="box", slots=slots, container_runtime=runtime))
    await cluster.create(f"{CONFIG}environment: {{{environment}}}\n")
    await FakeAgent(cluster, "box").wait_for_desired()
    (attempt,) = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
    assert [(each["runtime"], each["image"]) for each in attempt["containers"]] == [(runtime, image)]
