"""Commands over the API: launch, run, end, kill, priority, and the rights of their tokens."""

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.cluster import Cluster, login
from tests.support.command_calls import ECHO, FILE, C, attempt, get_command, launch, log, wait_for_state
from tests.support.seeded_cluster import CHECKPOINT
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState, TaskState
from determined_master.allocations import repository as allocations
from determined_master.api.v1.commands import MAX_CONFIG_CHARACTERS
from determined_master.db.models import AllocationRow, JobRow, TaskRow
from determined_master.tasks import repository as tasks


async def test_a_command_runs_to_its_end(cluster: Cluster):
    agent = await cluster.join()
    command = await launch(cluster, {**ECHO, "description": "greeting"})
    desired = await attempt(agent, command)
    assert desired.spec is not None
    assert (desired.spec.entrypoint, desired.spec.task_type, desired.spec.slots) == (["echo", "hello"], "COMMAND", [0])
    assert desired.spec.environment["DET_TASK_TYPE"] == "COMMAND"
    assert not {"DET_TRIAL_ID", "DET_EXPERIMENT_ID", "DET_HPARAMS"} & desired.spec.environment.keys()
    await agent.run(desired)
    running = await wait_for_state(cluster, command, "RUNNING")
    assert running["container"]["parent"] == "one"
    await agent.exit(desired)
    ended = await wait_for_state(cluster, command, "TERMINATED")
    assert (ended["exitCode"], ended["exitStatus"]) == (0, "exited successfully")
    assert (ended["description"], ended["username"], ended["slots"]) == ("greeting", "admin", 1)
    task = (await cluster.get(f"/api/v1/tasks/{command}"))["task"]
    assert (task["taskType"], len(task["allocations"])) == ("TASK_TYPE_COMMAND", 1)
    assert task["endTime"] is not None


class Undone(Exception):
    """Ends a transaction without a commit, so that no loop sees it."""


async def test_the_end_of_a_command_is_not_settled_as_that_of_a_trial(cluster: Cluster):
    agent = await cluster.join()
    command = await launch(cluster)
    desired = await attempt(agent, command)
    await agent.run(desired)
    await agent.exit(desired)
    await wait_for_state(cluster, command, "TERMINATED")
    unsettled: dict[bool, list[str]] = {}
    with suppress(Undone):
        async with cluster.master.database.write() as session:
            await allocations.change(session, await allocations.get(session, desired.allocation_id), settled=False)
            for of_trials in (False, True):
                unsettled[of_trials] = list(await allocations.unsettled(session, of_trials=of_trials))
            raise Undone
    assert unsettled == {False: [desired.allocation_id], True: []}


async def test_a_command_that_fails_by_itself_is_not_run_again(cluster: Cluster):
    agent = await cluster.join()
    command = await launch(cluster)
    desired = await attempt(agent, command)
    await agent.run(desired)
    await agent.exit(desired, code=3)
    ended = await wait_for_state(cluster, command, "TERMINATED")
    assert ended["exitCode"] == 3
    assert "3" in ended["exitStatus"]
    assert any(line.startswith("the command failed: ") for line in await log(cluster, command))
    async with cluster.master.database.read() as session:
        row = await tasks.get(session, command)
        assert (row.state, row.run_id) == (TaskState.ERROR, 1)


async def test_a_killed_command_is_canceled_and_its_slot_is_free(cluster: Cluster):
    agent = await cluster.join()
    running, waiting = await launch(cluster), await launch(cluster)
    desired = await attempt(agent, running)
    await agent.run(desired)
    for command in (waiting, running):
        assert (await cluster.post(f"{C}/{command}/kill", {})).status_code == 200
    ended = await wait_for_state(cluster, waiting, "TERMINATED")
    assert (ended["exitStatus"], ended["exitCode"]) == ("killed by a user", None)
    assert (await get_command(cluster, running))["state"] == "STATE_TERMINATING"
    assert [each.state for each in await agent.desired()] == ["stopped"]
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    await wait_for_state(cluster, running, "TERMINATED")
    assert (await cluster.post(f"{C}/{running}/kill", {})).json()["command"]["state"] == "STATE_TERMINATED"
    await attempt(agent, await launch(cluster))


async def test_a_command_without_slots_runs_while_all_slots_are_held(cluster: Cluster):
    agent = await cluster.join(slots=1)
    slotted = await launch(cluster)
    await agent.run(await attempt(agent, slotted))
    aux = await launch(cluster, {**ECHO, "resources": {"slots": 0}})
    desired = await attempt(agent, aux)
    assert desired.spec is not None
    assert desired.spec.slots == []


async def test_a_command_that_needs_too_many_slots_is_refused_with_the_reason(cluster: Cluster):
    await cluster.join(slots=1)
    answer = await cluster.post("/api/v1/commands", {"config": {**ECHO, "resources": {"slots": 2}}})
    assert answer.status_code == 400
    assert answer.json()["error"]["error"] == (
        "request unfulfillable: the command needs 2 slots on one agent, but the largest agent of pool 'default' has 1; "
        "lower resources.slots to 1 or less, or add agents"
    )


async def test_a_command_gets_its_files(cluster: Cluster):
    agent = await cluster.join()
    command = await launch(cluster, files=[FILE])
    desired = await attempt(agent, command)
    assert desired.spec is not None
    assert desired.spec.context is not None
    assert cluster.master.blobs.size(desired.spec.context.hash) == desired.spec.context.size
    async with cluster.master.database.read() as session:
        assert await tasks.live_contexts(session) == {desired.spec.context.hash}
    assert (await cluster.get(f"/api/v1/tasks/{command}/context_directory"))["b64Tgz"]
    await agent.exit(desired)
    await wait_for_state(cluster, command, "TERMINATED")
    async with cluster.master.database.read() as session:
        assert await tasks.live_contexts(session) == set()


@pytest.mark.parametrize("body", [{}, {"config": {}}, {"config": {"entrypoint": None}}])
async def test_a_command_without_an_entrypoint_runs_and_its_log_says_so(cluster: Cluster, body: dict[str, Any]):
    agent = await cluster.join()
    answer = await cluster.post(C, body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["config"]["entrypoint"] == ["true"]
    command = answer.json()["command"]["id"]
    await agent.exit(await attempt(agent, command))
    await wait_for_state(cluster, command, "TERMINATED")
    assert (await log(cluster, command))[0] == "there is no entrypoint, so the command does nothing"


async def test_invalid_commands_are_refused_with_the_reason(cluster: Cluster):
    for body, text in (
        ({"config": {"entrypoint": []}}, "the entrypoint is empty"),
        ({"config": {**ECHO, "resources": {"slot": 1}}}, 'did you mean "slots"?'),
        ({"config": {**ECHO, "resources": {"slots": -1}}}, "at least 0"),
        ({"config": {**ECHO, "resources": {"resource_pool": "gpus"}}}, 'unknown resource pool "gpus"'),
        ({"config": ECHO, "templateName": "t"}, "templates are not supported yet"),
        ({"config": ECHO, "files": [{**FILE, "path": "../x"}]}, "../x"),
        ({"config": ECHO, "files": 1.5}, "files is not a list"),
        ({"config": ECHO, "files": [1.5]}, "the context has an entry without a path"),
        ({"config": {**ECHO, "description": "x" * MAX_CONFIG_CHARACTERS}}, "without its files is larger than"),
        ({"config": {**ECHO, "description": "x" * 2000}}, "description"),
        ({"config": "entrypoint: ls"}, "config: expected a mapping, got a text"),
    ):
        answer = await cluster.post(C, body)
        assert answer.status_code == 400, answer.text
        assert text in answer.json()["error"]["error"]
    assert (await cluster.post(C, {"config": ECHO, "contextHash": "0" * 64})).status_code == 404
    assert (await cluster.post(C, {"config": ECHO, "workspaceId": 99})).status_code == 404
    async with cluster.master.database.read() as session:
        assert (await session.scalars(select(TaskRow))).all() == []
        assert (await session.scalars(select(JobRow))).all() == []


async def test_settings_without_effect_are_named_in_the_log_and_secrets_are_masked(cluster: Cluster):
    variables = ["API_TOKEN=very-secret", "PLAIN=1"]
    environment = {"image": "some/image", "environment_variables": variables}
    command = await launch(cluster, {**ECHO, "environment": environment, "work_dir": "/x"})
    lines = await log(cluster, command)
    assert len(lines) == 2
    assert lines[0].startswith('"work_dir" has no effect yet')
    assert lines[1].startswith('"environment.image" has no effect without containers')
    config = (await cluster.get(f"{C}/{command}"))["config"]
    assert config["environment"]["environment_variables"]["cpu"] == ["API_TOKEN=********", "PLAIN=1"]


async def test_the_list_of_commands_is_filtered_sorted_and_paged(cluster: Cluster):
    first, second = (
        await launch(cluster, {**ECHO, "description": "b"}),
        await launch(cluster, {**ECHO, "description": "a"}),
    )
    await login(cluster.client, "determined")
    third = await launch(cluster, {**ECHO, "description": "c"})

    async def ids(**query: Any) -> list[str]:
        return [each["id"] for each in (await cluster.get(C, **query))["commands"]]

    assert await ids() == [first, second, third]
    assert await ids(orderBy="ORDER_BY_DESC") == [third, second, first]
    assert await ids(sortBy="SORT_BY_DESCRIPTION") == [second, first, third]
    assert await ids(users="determined") == [third]
    assert await ids(users="nobody") == []
    assert await ids(limit=1, offset=1) == [second]
    assert await ids(workspaceId=2) == []
    assert (await cluster.client.get(C, params={"sortBy": "SORT_BY_NAME"})).status_code == 400


async def test_only_the_owner_and_admins_change_a_command(cluster: Cluster):
    command = await launch(cluster)
    await login(cluster.client, "determined")
    for path, body in (("kill", {}), ("set_priority", {"priority": 1})):
        answer = await cluster.post(f"{C}/{command}/{path}", body)
        assert answer.status_code == 403
        assert "belongs to admin" in answer.text
    await login(cluster.client, "admin")
    assert (await cluster.post(f"{C}/{command}/set_priority", {"priority": 100})).status_code == 400
    assert (await cluster.post(f"{C}/{command}/kill", {})).status_code == 200


async def test_a_priority_changes_the_place_in_the_queue(cluster: Cluster):
    first, second = await launch(cluster), await launch(cluster)

    async def both_wait() -> bool:
        async with cluster.master.database.read() as session:
            return len((await session.scalars(select(AllocationRow.id))).all()) == 2

    await eventually(both_wait)
    answer = await cluster.post(f"{C}/{second}/set_priority", {"priority": 1})
    assert answer.json()["command"]["priority"] == 1
    agent = await cluster.join(slots=1)
    await attempt(agent, second)
    assert [each.allocation_id for each in await agent.desired()] == [f"{second}.1"]
    assert (await get_command(cluster, first))["state"] == "STATE_QUEUED"


async def test_the_token_of_a_command_acts_for_its_own_allocation_alone(cluster: Cluster):
    agent = await cluster.join(slots=3)
    await cluster.create()
    mine, other = await launch(cluster), await launch(cluster)
    for command in (mine, other):
        await agent.run(await attempt(agent, command))
    headers = cluster.as_task(f"{mine}.1")
    allowed: list[tuple[str, str, Any]] = [
        ("POST", f"/api/v1/allocations/{mine}.1/ready", {}),
        ("GET", f"/api/v1/allocations/{mine}.1/signals/preemption", None),
        ("POST", "/api/v1/task/logs", {"logs": [{"taskId": mine, "log": "mine"}]}),
        ("GET", f"{C}/{mine}", None),
        ("GET", "/api/v1/experiments/1", None),
    ]
    report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1}}}
    refused: list[tuple[str, str, Any]] = [
        ("POST", f"/api/v1/allocations/{other}.1/ready", {}),
        ("POST", "/api/v1/task/logs", {"logs": [{"taskId": other, "log": "not mine"}]}),
        ("POST", "/api/v1/trials/1/metrics", {"group": "training", "metrics": report}),
        ("POST", "/api/v1/trials/1/progress", {"progress": 0.5}),
        (
            "POST",
            "/api/v1/checkpoints",
            {"uuid": CHECKPOINT, "taskId": mine, "resources": {}, "metadata": {"steps_completed": 1}},
        ),
        ("GET", f"/api/v1/tasks/{other}/context_directory", None),
        ("POST", C, {"config": ECHO}),
        ("POST", f"{C}/{mine}/kill", {}),
    ]
    for method, path, body in allowed:
        answer = await cluster.client.request(method, path, json=body, headers=headers)
        assert answer.status_code == 200, (method, path, answer.text)
    for method, path, body in refused:
        answer = await cluster.client.request(method, path, json=body, headers=headers)
        assert answer.status_code == (404 if path == "/api/v1/checkpoints" else 403), (method, path, answer.text)


async def test_only_its_owner_writes_to_the_log_of_a_command(cluster: Cluster):
    command = await launch(cluster)
    line = {"logs": [{"taskId": command, "log": "from outside"}]}
    await login(cluster.client, "determined")
    assert (await cluster.post("/api/v1/task/logs", line)).status_code == 403
    await login(cluster.client, "admin")
    assert (await cluster.post("/api/v1/task/logs", line)).status_code == 200
    assert await log(cluster, command) == ["from outside"]
    for name, length in (("stdtype", 9), ("source", 17), ("agentId", 256), ("containerId", 65), ("allocationId", 81)):
        long = {"logs": [{"taskId": command, "log": "long", name: "x" * length}]}
        assert (await cluster.post("/api/v1/task/logs", long)).status_code == 400, name


async def test_the_cluster_page_shows_what_a_command_holds_and_waits_for(cluster: Cluster):
    agent = await cluster.join(slots=1)
    running = await launch(cluster, {**ECHO, "description": "holds"})
    await agent.run(await attempt(agent, running))
    waiting = await launch(cluster, {**ECHO, "description": "waits"})

    async def both_are_listed() -> Any:
        overview = await cluster.get("/detent/cluster/overview")
        return overview if len(overview["queue"]) == 2 else None

    overview = await eventually(both_are_listed)
    held = overview["agents"][0]["slots"][0]["held"]
    assert (held["name"], held["taskId"], held["trialId"]) == ("holds", running, None)
    assert [(each["name"], each["taskId"]) for each in overview["queue"]] == [("waits", waiting), ("holds", running)]
    assert [each["name"] for each in (await cluster.get("/detent/cluster/holds"))["holds"]] == ["holds"]
