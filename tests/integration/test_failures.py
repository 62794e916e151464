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
    (wish,) = await agent.wished()
    await agent.run(wish)
    rank = RankExit(rank=3, code=1, host="node-2", last_lines=lines, time=1.0)
    message = "\n".join(["rank 3 on node-2 exited with code 1:", *lines])
    exit_ = ContainerExit(kind="exited", code=1, ranks=[rank], message=message)
    await agent.say(wish, ContainerState.TERMINATED, exit_)
    return wish


async def reaches(one: Cluster, experiment: int, state: str) -> None:
    async def is_there() -> bool:
        return await one.state(experiment) == state

    await eventually(is_there)


async def log(one: Cluster) -> list[str]:
    answer = await one.client.get("/api/v1/trials/1/logs")
    return [json.loads(line)["result"]["log"].removesuffix("\n") for line in answer.text.splitlines()]


@pytest.fixture
async def failed(one: Cluster) -> Cluster:
    """Experiment 1 failed twice with max_restarts 1; a pause lies between."""
    agent = await one.join()
    await one.create(CONFIG + "max_restarts: 1\n")
    await fail(agent)
    (wish,) = await agent.wished()
    await agent.run(wish)
    await one.post("/api/v1/experiments/1/pause")
    signals = f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption"
    await one.post(signals, {}, **one.as_task(wish.allocation_id))
    await agent.exit(wish)
    await reaches(one, 1, "STATE_PAUSED")
    await one.post("/api/v1/experiments/1/activate")
    await fail(agent)
    await reaches(one, 1, "STATE_ERROR")
    return one


async def test_each_attempt_has_its_own_reason(failed: Cluster):
    attempts = (await failed.get("/detent/trials/1/attempts"))["attempts"]
    assert [(each["reason"], each["failure"]) for each in attempts] == [
        ("errored", CAUSE),
        ("preempted", None),
        ("errored", CAUSE),
    ]
    assert attempts[1]["message"] == "paused by admin"


async def test_the_log_counts_attempts_without_pauses(failed: Cluster):
    said = [line for line in await log(failed) if line.startswith("attempt ")]
    assert said == [
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
    ("shown", "stderr"),
    [
        ("no data in /data; see the wiki: (page 3)", "no data in /data; see the wiki: (page 3)"),
        ("\x1b[31m[rank=3] no data\x1b[0m", "[rank=3] no data"),
        ("x" * 900, "x" * 900),
    ],
    ids=["plain", "coloured", "long"],
)
async def test_the_first_error_is_the_line_that_the_cause_quotes_if_none_looks_like_an_error(
    one: Cluster, shown: str, stderr: str
):
    agent = await one.join()
    await one.create(CONFIG + "max_restarts: 0\n")
    (wish,) = await agent.wished()
    await agent.run(wish)
    for text in ("no dat", "x" * 10, shown, "loss 0.5"):
        line = {
            "taskId": wish.allocation_id.rpartition(".")[0],
            "allocationId": wish.allocation_id,
            "log": text,
            "source": "task",
        }
        assert (await one.post("/api/v1/task/logs", {"logs": [line]})).status_code == 200
    rank = RankExit(rank=3, code=1, host="node-2", last_lines=["loss 0.5"], last_stderr=stderr, time=1.0)
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="exited", code=1, ranks=[rank], message="x"))
    await reaches(one, 1, "STATE_ERROR")
    for query in ({}, {"allocationId": wish.allocation_id}):
        assert (await one.get("/detent/trials/1/logs/first-error", **query))["line"]["text"] == shown
    failure = (await one.get("/detent/experiments/1/status"))["failure"]
    async with one.master.database.read() as session:
        assert (await session.get_one(LogRow, failure["logLine"])).log == shown


async def search(one: Cluster, text: str, operator: str = "contains") -> list[dict]:
    field = {"kind": "field", "columnName": "failure", "operator": operator, "value": text}
    group = {"kind": "group", "conjunction": "and", "children": [field]}
    body = {"filter": json.dumps({"filterGroup": group, "showArchived": False})}
    answer = await one.post("/detent/experiments/search", body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["experiments"])


async def test_lists_show_the_failure_and_are_filtered_and_grouped_by_it(failed: Cluster):
    async def found() -> list[dict]:
        return await search(failed, "bad shape")

    (row,) = await eventually(found)
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


async def test_secrets_of_the_configuration_are_masked(one: Cluster):
    agent = await one.join()
    secret = "environment: {environment_variables: [API_TOKEN=hunter2222]}\nmax_restarts: 0\n"
    await one.create(CONFIG + secret)
    await fail(agent, ["KeyError: 'hunter2222'"])
    await reaches(one, 1, "STATE_ERROR")
    text = (await one.get("/detent/experiments/1/status"))["failure"]["text"]
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
async def test_an_end_that_was_asked_for_says_by_whom(one: Cluster, steps: list[str], message: str):
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    await agent.run(wish)
    for step in steps:
        await one.post(f"/api/v1/experiments/1/{step}")
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))

    async def ended() -> list[dict]:
        attempts = (await one.get("/detent/trials/1/attempts"))["attempts"]
        return [each for each in attempts if each["endedAt"]]

    (attempt,) = await eventually(ended)
    assert (attempt["reason"], attempt["message"], attempt["failure"]) == ("killed", message, None)


async def test_what_no_agent_can_hold_any_more_waits_and_says_so(one: Cluster):
    experiment = await one.create(CONFIG + "resources: {slots_per_trial: 4}\n")
    await one.join()

    async def is_said() -> bool:
        waiting = (await one.get("/detent/trials/1/progress"))["waiting"] or ""
        return waiting.startswith("needs 4 slots, but the only agent of pool 'default' has 1")

    await eventually(is_said)
    large = await one.join("large", slots=4)
    await large.wished()
    assert await one.state(experiment) != "STATE_ERROR"


async def test_a_disabled_agent_is_named(one: Cluster):
    agent = await one.join()
    await one.create()
    (wish,) = await agent.wished()
    await agent.run(wish)
    await one.post("/api/v1/agents/one/disable", {"drain": False})
    (attempt,) = (await one.get("/detent/trials/1/attempts"))["attempts"]
    assert attempt["message"] == "agent one was disabled by admin"


@pytest.mark.parametrize(
    ("runtime", "environment", "image"),
    [
        ("docker", "image: {cpu: lab/cpu:1, cuda: lab/cuda:1}", "lab/cuda:1"),
        ("podman", "force_pull_image: true", ""),
        ("process", "image: lab/train:1", ""),
    ],
)
async def test_an_attempt_says_what_each_container_ran_in(one: Cluster, runtime: str, environment: str, image: str):
    slots = [SlotFacts(id=0, type="cuda", uuid="GPU-1")]
    await one.master.agents.welcome(Hello(agent_id="box", slots=slots, container_runtime=runtime))
    await one.create(f"{CONFIG}environment: {{{environment}}}\n")
    await FakeAgent(one, "box").wished()
    (attempt,) = (await one.get("/detent/trials/1/attempts"))["attempts"]
    assert [(each["runtime"], each["image"]) for each in attempt["containers"]] == [(runtime, image)]
