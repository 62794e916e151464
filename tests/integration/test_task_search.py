"""Searches whose method runs in a task, on a cluster with fake agents: stored steps, failures and ends."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_halving_search import report, trial, trial_of
from tests.support.cluster import Cluster, open_cluster
from tests.support.search_runner import OWN, Runner, begin_search, container, create_action, list_trials, wait_for_state
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer
from determined_master.tasks import repository as tasks


async def test_a_task_of_the_owner_runs_the_method_and_its_actions_make_the_trials(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    spec = runner.desired.spec
    assert spec is not None
    assert (spec.slots, spec.owner, spec.entrypoint) == ([], "admin", ["python3", "-m", "determined.exec.search"])
    assert spec.harness == "ours"
    start = (await runner.get()).json()
    assert (start["cursor"], start["snapshot"], start["isOver"]) == (-1, None, False)
    assert start["searcher"]["method"] == "my_search:MySearch"
    assert await list_trials(cluster) == []
    assert (await runner.step(create_action("a", x=0.1), create_action("b", x=0.2), to=0)).json() == {"isOver": False}
    assert [each["hparams"] for each in await list_trials(cluster)] == [{"x": 0.1, "depth": 3}, {"x": 0.2, "depth": 3}]
    first = await container(agent, "TRIAL")
    await agent.run(first)
    await report(cluster, first, 4, {"loss": 0.5})
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
    own = await trial_of(cluster, first)
    decisions = (await cluster.get(f"/detent/trials/{own}/decisions"))["decisions"]
    assert [(each["kind"], each["reason"]) for each in decisions] == [
        ("created", f"wanted {name}"),
        ("stopped", "0.5 is too much"),
    ]
    assert (await runner.get()).json()["snapshot"] == {"seen": 0}
    await agent.exit(first)
    assert [(each["kind"], each["reason"]) for each in await runner.events()] == [("closed", "searcher_stopped")]
    done = await runner.step({"kind": "shutdown", "failed": False, "reason": "good enough"})
    assert done.json() == {"isOver": True}
    await agent.exit(runner.desired)
    await agent.exit(await container(agent, "TRIAL"))
    assert "good enough" in await wait_for_state(cluster, "COMPLETED")


async def test_the_status_of_a_search_names_its_waiting_task(cluster: Cluster):
    await cluster.create(OWN)

    async def waits() -> bool:
        answer = await cluster.get("/detent/experiments/1/why")
        return bool(answer["waiting"] == 1 and answer["first"]["slots"] == 0)

    await eventually(waits)
    text = (await cluster.get("/detent/experiments/1/status"))["text"]
    assert ": the search begins in task " in text
    assert ", which waits: " in text


async def test_a_repeated_step_is_applied_once_and_one_from_another_cursor_not_at_all(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    assert (await runner.step(create_action("a", x=0.1), to=0)).status_code == 200
    desired = await container(agent, "TRIAL")
    await agent.run(desired)
    await report(cluster, desired, 1, {"loss": 1.0})
    await runner.events()
    runner.cursor = -1
    assert (await runner.step(create_action("a", x=0.1), to=0)).json() == {"isOver": False}
    assert len(await list_trials(cluster)) == 1
    for cursor, to, status in ((-1, runner.to, 409), (5, 6, 409), (0, 0, 400), (0, 99, 400)):
        runner.cursor = cursor
        answer = await runner.step(create_action("b", x=0.2), to=to)
        assert answer.status_code == status, (cursor, to)
    assert len(await list_trials(cluster)) == 1
    assert (await runner.get("/events", cursor=7)).status_code == 409
    assert await cluster.state(1) == "STATE_RUNNING"


async def test_after_a_task_died_the_next_task_continues_from_the_snapshot(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    runner.snapshot = {"seen": 41}
    await runner.step(create_action("a", x=0.1), to=0)
    await runner.fail("KeyError: 'x' (my_search.py:7)", is_final=False)
    await agent.exit(runner.desired, code=1)
    next_ = await container(agent, "SEARCH", but=runner.desired.allocation_id)
    text = (await cluster.get("/detent/experiments/1/status"))["text"]
    assert "the search method failed: KeyError: 'x' (my_search.py:7); its task starts again" in text
    await agent.run(next_)
    after = Runner(cluster, next_)
    start = await after.start()
    assert (start["cursor"], start["snapshot"]) == (0, {"seen": 41})
    # The token of the first task is void, so a late step of it changes nothing.
    assert (await runner.step(create_action("b", x=0.1), to=1)).status_code == 401
    assert len(await list_trials(cluster)) == 1
    trial_desired = await container(agent, "TRIAL")
    await agent.run(trial_desired)
    await report(cluster, trial_desired, 1, {"loss": 1.0})
    after.cursor = 0
    assert len(await after.events()) == 1
    assert (await after.step()).status_code == 200
    assert (await cluster.get("/detent/experiments/1/status"))["text"] == "running"


async def test_a_task_that_dies_too_often_ends_the_experiment_with_its_last_reason(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    await runner.step(create_action("a", x=0.1), to=0)
    task_id = runner.desired.allocation_id.rpartition(".")[0]
    async with cluster.master.database.write() as session:
        await tasks.change(session, await tasks.get(session, task_id), failures=5)
    await runner.fail("ValueError: bad (my_search.py:3)", is_final=False)
    await agent.exit(runner.desired, code=1)
    await agent.exit(await container(agent, "TRIAL"), code=137)
    why = await wait_for_state(cluster, "ERROR")
    assert "the search method failed: ValueError: bad (my_search.py:3)" in why
    assert (await cluster.get("/detent/experiments/1/status"))["text"].startswith("failed: the search method failed")


async def test_a_task_that_ends_without_its_search_ends_the_experiment(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    await agent.exit(runner.desired, code=0)
    assert "the task of the search exited before the search was over; its log: det task logs" in await wait_for_state(
        cluster, "ERROR"
    )


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([create_action(f"t{n}", x=0.1) for n in range(4)], "it asks for 4 trials, and searcher.max_trials is 3"),
        ([create_action("a", x=0.1), create_action("a", x=0.1)], "it creates two trials with the request id a"),
        ([create_action("a")], "it creates a trial without a value of x"),
        ([{"kind": "stop", "requestId": "z"}], "it stops a trial that does not exist: z"),
    ],
)
async def test_refused_actions_end_the_experiment_and_make_no_trial(cluster: Cluster, actions: list[Any], reason: str):
    _agent, runner = await begin_search(cluster)
    answer = await runner.step(*actions, to=0)
    assert (answer.status_code, reason in answer.text) == (400, True), answer.text
    assert reason in await wait_for_state(cluster, "ERROR")
    assert await list_trials(cluster) == []


async def test_a_final_failure_ends_the_experiment_at_once(cluster: Cluster):
    _agent, runner = await begin_search(cluster)
    await runner.step(create_action("a", x=0.1), to=0)
    await runner.fail("there is no module my_search", is_final=True)

    async def stops() -> bool:
        return [each["state"] for each in await list_trials(cluster)] != ["STATE_ACTIVE"]

    await eventually(stops)
    assert "the search method failed: there is no module my_search" in await wait_for_state(cluster, "ERROR")


@pytest.mark.parametrize(
    ("metrics", "state", "reason"),
    [
        ({"loss": "NaN"}, None, "reported loss = nan"),
        ({"loss": "low"}, "ERROR", 'reported loss as a text ("low")'),
    ],
)
async def test_an_unusable_metric_never_reaches_the_method(
    cluster: Cluster, metrics: dict[str, Any], state: str | None, reason: str
):
    agent, runner = await begin_search(cluster, slots=1)
    await runner.step(create_action("a", x=0.1), to=0)
    desired = await container(agent, "TRIAL")
    await agent.run(desired)
    await report(cluster, desired, 2, metrics)
    assert await runner.events() == []
    assert (await runner.step()).json() == {"isOver": state is not None}
    await agent.exit(desired, code=137)
    if state is not None:
        assert reason in await wait_for_state(cluster, state)
        return
    assert [each["reason"] for each in await runner.events()] == ["errored"]
    assert (await trial(cluster, 1))["state"] == "STATE_ERROR"
    decisions = (await cluster.get("/detent/trials/1/decisions"))["decisions"]
    assert reason in decisions[-1]["reason"]


async def test_reports_of_one_step_are_one_event_for_the_method(cluster: Cluster):
    agent, runner = await begin_search(cluster, slots=1)
    await runner.step(create_action("a", x=0.1), to=0)
    desired = await container(agent, "TRIAL")
    await agent.run(desired)
    await report(cluster, desired, 2, {"other": 1.0})
    assert await runner.events() == []
    assert (await runner.step()).json() == {"isOver": False}
    await report(cluster, desired, 2, {"loss": 0.5})
    reported = [(each["steps"], each["metric"], each["metrics"]) for each in await runner.events()]
    assert reported == [(2, 0.5, {"other": 1.0, "loss": 0.5})]
    assert await runner.events() != []  # no step was stored, so the events come again
    assert (await runner.step()).json() == {"isOver": False}
    await report(cluster, desired, 2, {"loss": 0.5, "late": 1.0})
    assert await runner.events() == []  # the step was judged
    assert (await cluster.get("/api/v1/experiments/1"))["experiment"]["state"] == "STATE_RUNNING"


@pytest.mark.parametrize("way", ["a later step begins", "the trial completes"])
async def test_a_step_that_ends_without_the_metric_ends_the_search(cluster: Cluster, way: str):
    agent, runner = await begin_search(cluster, slots=1)
    await runner.step(create_action("a", x=0.1), to=0)
    desired = await container(agent, "TRIAL")
    await agent.run(desired)
    await report(cluster, desired, 2, {"other": 1.0})
    await runner.events()
    assert (await runner.step()).json() == {"isOver": False}
    if way == "the trial completes":
        await agent.exit(desired)
        assert [each["kind"] for each in await runner.events()] == ["closed"]
    else:
        await report(cluster, desired, 4, {"other": 1.0})
        assert await runner.events() == []
    assert (await runner.step()).json() == {"isOver": True}
    await agent.exit(desired, code=137)
    expected = "the validation after 2 batches has no loss, the searcher's metric; it reported other"
    assert expected in await wait_for_state(cluster, "ERROR")


async def test_only_the_task_of_the_search_may_act_for_it(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    await runner.step(create_action("a", x=0.1), to=0)
    own_trial = await container(agent, "TRIAL")
    second = await cluster.create(OWN)
    others: list[DesiredContainer] = []

    async def both_are_desired() -> bool:
        others[:] = [w for w in await agent.desired() if w.spec and w.spec.task_type == "SEARCH"]
        return len(others) == 2

    await eventually(both_are_desired)
    other = next(w for w in others if w.allocation_id != runner.desired.allocation_id)
    for headers, expected in (
        ({}, 403),
        (cluster.as_task(own_trial.allocation_id), 403),
        (cluster.as_task(other.allocation_id), 403),
        (cluster.as_task(runner.desired.allocation_id), 200),
    ):
        assert (await cluster.client.get(runner.path, headers=headers)).status_code == expected
    await agent.run(other)
    assert (await Runner(cluster, other, second).get()).status_code == 200
    # The token of the search task gives no other rights.
    body = {"progress": 0.5}
    mine = cluster.as_task(runner.desired.allocation_id)
    assert (await cluster.post("/api/v1/trials/1/progress", body, **mine)).status_code == 403
    assert (await cluster.post("/api/v1/experiments/1/kill", {}, **mine)).status_code == 403


async def test_a_pause_ends_the_task_and_an_activation_starts_another(cluster: Cluster):
    agent, runner = await begin_search(cluster)
    await runner.step(create_action("a", x=0.1), to=0)
    first = await container(agent, "TRIAL")
    await agent.run(first)
    await report(cluster, first, 4, {"loss": 0.5})
    assert len(await runner.events()) == 1
    assert (await cluster.post("/api/v1/experiments/1/pause")).status_code == 200

    async def is_stopped() -> bool:
        return any(
            w.container_id == runner.desired.container_id and w.state == "stopped" for w in await agent.desired()
        )

    await eventually(is_stopped)
    # A step that was on its way is stored: its trial waits for the activation.
    assert (await runner.step(create_action("b", x=0.2))).status_code == 200
    await agent.exit(runner.desired, code=137)
    await agent.exit(first)
    assert [each["state"] for each in await list_trials(cluster)] == ["STATE_COMPLETED", "STATE_PAUSED"]
    await cluster.post("/api/v1/experiments/1/activate")
    await container(agent, "TRIAL", but=first.allocation_id)
    desired = await container(agent, "SEARCH", but=runner.desired.allocation_id)
    await agent.run(desired)
    assert (await Runner(cluster, desired).start())["cursor"] == runner.cursor
    assert (await cluster.post("/api/v1/experiments/1/kill")).status_code == 200

    async def gone() -> bool:
        return any(w.container_id == desired.container_id and w.state == "stopped" for w in await agent.desired())

    await eventually(gone)
    await agent.exit(desired, code=137)
    for each in await agent.desired():
        await agent.exit(each, code=137)
    await wait_for_state(cluster, "CANCELED")


async def test_new_limits_reach_the_task_and_bound_it_at_once(cluster: Cluster):
    _agent, runner = await begin_search(cluster)
    await runner.step(create_action("a", x=0.1), to=0)
    patch = {"searcher": {"maxTrials": 5, "maxConcurrentTrials": 4}}
    assert (await cluster.client.patch("/api/v1/experiments/1", json=patch)).status_code == 200
    assert await runner.events() == [{"kind": "limits", "maxTrials": 5, "maxConcurrentTrials": 4}]
    more = [create_action(f"t{n}", x=0.1) for n in range(4)]
    assert (await runner.step(*more)).status_code == 200
    assert len(await list_trials(cluster)) == 5


async def test_a_master_that_starts_again_goes_on_where_the_search_was(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        _agent, runner = await begin_search(cluster)
        await runner.step(create_action("a", x=0.1), to=0)
    async with open_cluster(tmp_path) as cluster:
        agent = await cluster.join(slots=4)
        again = await container(agent, "SEARCH")
        await agent.run(again)
        restarted = Runner(cluster, again)
        assert (await restarted.start())["snapshot"] == {"seen": 0}
        assert (await restarted.step(create_action("a", x=0.1), to=0)).status_code == 409
        assert len(await list_trials(cluster)) == 1
