"""An experiment's life over HTTP: created, placed, paused, activated, canceled, killed, deleted."""

from tests.support.checkpoints import checkpoint_uuid
from tests.support.cluster import Cluster, cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState

GRID = """
name: grid
entrypoint: python3 run.py
searcher: {name: grid, metric: loss}
hyperparameters:
  a: {type: categorical, vals: [1, 2, 3, 4, 5, 6]}
"""


async def reaches(one: Cluster, experiment_id: int, *states: str) -> None:
    async def there() -> bool:
        return (await one.state(experiment_id)) in states

    await eventually(there)


async def test_an_experiment_is_placed_runs_and_completes(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    wish = (await agent.wished())[0]
    assert wish.spec is not None
    assert wish.spec.slots == [0]
    await agent.run(wish)
    assert await one.state(experiment) == "STATE_RUNNING"
    await agent.exit(wish)
    await reaches(one, experiment, "STATE_COMPLETED")
    assert (await one.get(f"/api/v1/experiments/{experiment}"))["experiment"]["progress"] == 1.0


async def test_a_trial_that_waits_says_why_and_starts_when_an_agent_joins(one: Cluster):
    experiment = await one.create()

    async def why() -> bool:
        return "no agent" in ((await one.get("/detent/trials/1/progress"))["waiting"] or "")

    await eventually(why)
    assert await one.state(experiment) == "STATE_QUEUED"
    agent = await one.join()
    await agent.wished()


async def test_more_slots_than_any_agent_has_is_refused_with_the_reason(one: Cluster):
    await one.join(slots=2)
    config = "name: x\nentrypoint: a\nsearcher: {name: single, metric: m}\nhyperparameters: {}\n"
    answer = await one.post("/api/v1/experiments", {"config": config + "resources: {slots_per_trial: 3}"})
    assert answer.status_code == 400
    (found,) = answer.json()["diagnostics"]
    assert (found["code"], found["line"], found["column"]) == ("E210", 5, 30)
    assert found["message"] == (
        "request unfulfillable: a trial needs 3 slots, but the only agent of pool 'default' has 2; "
        "lower resources.slots_per_trial to 2 or less, or add agents"
    )


async def test_pause_preempts_what_is_ready_and_activate_goes_on_from_the_checkpoint(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    wish = (await agent.wished())[0]
    await agent.run(wish)
    headers = one.as_task(wish.allocation_id)
    await one.post(f"/api/v1/experiments/{experiment}/pause")
    poll = await one.client.get(
        f"/api/v1/allocations/{wish.allocation_id}/signals/preemption", params={"timeout_seconds": 30}, headers=headers
    )
    assert poll.json() == {"preempt": True}
    assert [w.state for w in await agent.wish()] == ["running"]
    await one.post(f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption", **headers)
    checkpoint = {
        "uuid": checkpoint_uuid(1),
        "taskId": wish.spec.task_id,
        "metadata": {"steps_completed": 7},
        "resources": {"f": "3"},
    }
    assert (await one.post("/api/v1/checkpoints", checkpoint, **headers)).status_code == 200
    await agent.exit(wish)

    async def free() -> bool:
        return not await agent.wish()

    await eventually(free)
    assert await one.state(experiment) == "STATE_PAUSED"
    assert (await one.post("/api/v1/me", **headers)).status_code in (401, 404, 405)
    await one.post(f"/api/v1/experiments/{experiment}/activate")
    again = (await agent.wished())[0]
    assert again.spec.environment["DET_LATEST_CHECKPOINT"] == checkpoint_uuid(1)
    assert again.spec.environment["DET_STEPS_COMPLETED"] == "7"
    assert again.spec.environment["DET_TRIAL_RUN_ID"] == "2"


async def test_pause_before_it_is_ready_kills_and_loses_nothing(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    wish = (await agent.wished())[0]
    await agent.say(wish, ContainerState.STARTING)
    await one.post(f"/api/v1/experiments/{experiment}/pause")
    assert [w.state for w in await agent.wish()] == ["stopped"]
    await agent.say(wish, ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    assert await one.state(experiment) == "STATE_PAUSED"
    await one.post(f"/api/v1/experiments/{experiment}/activate")
    assert (await agent.wished())[0].spec.environment["DET_TRIAL_RUN_ID"] == "2"
    assert (await one.get("/api/v1/trials/1"))["trial"]["restarts"] == 0


async def test_a_grid_is_paused_whole_and_activate_brings_back_the_unfinished(one: Cluster):
    agent = await one.join(slots=2)
    experiment = await one.create(GRID)
    first = await agent.wished(2)
    for wish in first:
        await agent.run(wish)
    await one.post(f"/api/v1/experiments/{experiment}/pause")
    other = await one.create()
    for wish in first:
        await one.post(
            f"/api/v1/allocations/{wish.allocation_id}/signals/ack_preemption", **one.as_task(wish.allocation_id)
        )
        await agent.exit(wish)
    waiting = (await agent.wished())[0]
    await agent.run(waiting)
    assert await one.state(other) == "STATE_RUNNING"
    assert len(await agent.wish()) == 1
    await agent.exit(waiting)
    await one.post(f"/api/v1/experiments/{experiment}/activate")
    await agent.wished(2)
    trials = (await one.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
    assert len(trials) == 6
    assert {t["state"] for t in trials} <= {"STATE_QUEUED", "STATE_STARTING", "STATE_RUNNING"}


async def test_failures_restart_until_max_restarts(one: Cluster):
    agent = await one.join()
    experiment = await one.create(
        "name: x\nentrypoint: a\nsearcher: {name: single, metric: m}\nhyperparameters: {}\nmax_restarts: 1"
    )
    for run in ("1", "2"):
        wish = (await agent.wished())[0]
        assert wish.spec.environment["DET_TRIAL_RUN_ID"] == run
        await agent.run(wish)
        await agent.exit(wish, code=3)
    await reaches(one, experiment, "STATE_ERROR")
    assert (await one.get("/api/v1/trials/1"))["trial"]["restarts"] == 1
    assert (await one.get(f"/api/v1/experiments/{experiment}"))["experiment"]["progress"] == 0.0


async def test_cancel_asks_for_a_checkpoint_and_kill_does_not(one: Cluster):
    agent = await one.join(slots=2)
    canceled, killed = await one.create(), await one.create()
    wishes = {w.spec.environment["DET_EXPERIMENT_ID"]: w for w in await agent.wished(2)}
    for wish in wishes.values():
        await agent.run(wish)
    await one.post(f"/api/v1/experiments/{canceled}/cancel")
    await one.post(f"/api/v1/experiments/{killed}/kill")
    states = {w.allocation_id: w.state for w in await agent.wish()}
    assert states[wishes[str(canceled)].allocation_id] == "running"
    assert states[wishes[str(killed)].allocation_id] == "stopped"
    await one.post(
        f"/api/v1/allocations/{wishes[str(canceled)].allocation_id}/signals/ack_preemption",
        **one.as_task(wishes[str(canceled)].allocation_id),
    )
    await agent.exit(wishes[str(canceled)])
    await agent.say(wishes[str(killed)], ContainerState.TERMINATED, ContainerExit(kind="killed", signal=9))
    await reaches(one, canceled, "STATE_CANCELED")
    await reaches(one, killed, "STATE_CANCELED")
    for experiment in (canceled, killed):
        assert (await one.get(f"/api/v1/experiments/{experiment}"))["experiment"]["progress"] == 0.0


async def test_delete_takes_all_of_it(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    running = await one.client.delete(f"/api/v1/experiments/{experiment}")
    assert running.status_code == 400
    wish = (await agent.wished())[0]
    await agent.run(wish)
    await agent.exit(wish)
    await reaches(one, experiment, "STATE_COMPLETED")
    assert (await one.client.delete(f"/api/v1/experiments/{experiment}")).status_code == 200

    async def gone() -> bool:
        return (await one.client.get(f"/api/v1/experiments/{experiment}")).status_code == 404

    await eventually(gone)
    assert (await one.get("/api/v1/experiments"))["experiments"] == []


async def test_a_bad_configuration_names_everything_and_stores_nothing(one: Cluster):
    answer = await one.post("/api/v1/experiments", {"config": "name: x\nsearcher: {name: single, metrik: m}\nfoo: 1\n"})
    assert answer.status_code == 400
    text = answer.json()["error"]["error"]
    assert "config.yaml:2" in text
    assert "config.yaml:3:1" in text
    assert {d["line"] for d in answer.json()["diagnostics"]} >= {2, 3}
    assert (await one.get("/api/v1/experiments"))["experiments"] == []


async def test_a_lost_agent_frees_its_trial_without_a_restart_and_fences_it(tmp_path):
    async with cluster(tmp_path, agent_reconnect_wait=0.05) as one:
        agent = await one.join()
        await one.create()
        wish = (await agent.wished())[0]
        await agent.run(wish)
        headers = one.as_task(wish.allocation_id)
        await one.master.agents.disconnected("one")
        other = await one.join("two")
        again = (await other.wished())[0]
        assert again.spec.environment["DET_TRIAL_RUN_ID"] == "2"
        assert (await one.get("/api/v1/trials/1"))["trial"]["restarts"] == 0
        late = await one.post(
            "/api/v1/trials/1/metrics",
            {
                "group": "training",
                "metrics": {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"a": 1}}},
            },
            **headers,
        )
        assert late.status_code == 401
        assert "fenced" in late.json()["error"]["error"]
        assert await agent.wish() == []
