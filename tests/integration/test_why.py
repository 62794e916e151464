"""Explanations of waiting work: blockers, the estimated start, and the changes that would start it."""

from pathlib import Path
from typing import Any

from tests.integration.test_preemption import PREEMPTING, URGENT, is_preempted, leave, run_attempt
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit
from determined.states import ContainerState

WIDE = CONFIG + "resources: {slots_per_trial: 2}\n"


async def why(cluster: Cluster, experiment: int) -> dict[str, Any]:
    """Waits until the scheduler has decided about the experiment's trial."""

    async def decided() -> dict[str, Any] | None:
        answer = await cluster.get(f"/detent/experiments/{experiment}/why")
        first = answer["first"]
        return answer if first and first["reason"] != "waiting for the scheduler" else None

    return await eventually(decided)


async def test_blockers_are_named_with_the_changes_that_start_the_trial(cluster: Cluster):
    agent = await cluster.join(slots=2)
    first = await cluster.create()
    desired = await run_attempt(agent, first)
    answer = await why(cluster, await cluster.create(WIDE))
    explanation = answer["first"]
    assert answer["waiting"] == 1
    assert explanation["reason"].startswith("needs 2 slots; 1 of 2 free in pool 'default'")
    assert [(each["allocationId"], each["why"]) for each in explanation["blockers"]] == [
        (desired.allocation_id, "running")
    ]
    assert explanation["blockers"][0]["name"] == "trial 1 of experiment 1 (tiny)"
    assert explanation["startsInSeconds"] is None
    assert explanation["unknown"] == "nobody knows how long trial 1 of experiment 1 will run"
    job = (await cluster.get("/api/v1/experiments/1"))["experiment"]["jobId"]
    assert (explanation["changes"]["slots"], explanation["changes"]["pausedJobs"]) == (
        1,
        [{"jobId": job, "name": "experiment 1 (tiny)"}],
    )


async def test_the_start_is_estimated_from_the_progress_of_running_trials(cluster: Cluster):
    agent = await cluster.join()
    desired = await run_attempt(agent, await cluster.create())
    headers = cluster.as_task(desired.allocation_id)
    report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 10, "metrics": {"avgMetrics": {"loss": 1.0}}}
    await cluster.post("/api/v1/trials/1/metrics", {"group": "training", "metrics": report}, **headers)
    assert (await cluster.post("/api/v1/trials/1/progress", {"progress": 0.5}, **headers)).status_code == 200
    explanation = (await why(cluster, await cluster.create()))["first"]
    assert explanation["unknown"] == ""
    assert 0 <= explanation["startsInSeconds"] < 600
    assert explanation["blockers"][0]["secondsLeft"] == explanation["startsInSeconds"]


async def test_the_start_after_a_preemption_is_estimated_from_earlier_preemptions(tmp_path: Path):
    async with open_cluster(tmp_path, **PREEMPTING) as cluster:
        agent = await cluster.join()
        first = await cluster.create()
        desired = await run_attempt(agent, first)
        urgent = await cluster.create(URGENT)
        await eventually(lambda: is_preempted(cluster, desired))
        explanation = (await why(cluster, urgent))["first"]
        assert explanation["startsInSeconds"] is None, "it has never left before"
        await leave(cluster, agent, desired)
        await agent.exit(await run_attempt(agent, urgent))
        desired = await run_attempt(agent, first, run=2)
        urgent = await cluster.create(URGENT)
        await eventually(lambda: is_preempted(cluster, desired))
        explanation = (await why(cluster, urgent))["first"]
        assert [each["why"] for each in explanation["blockers"]] == ["leaving"]
        assert 0 < explanation["startsInSeconds"] < 60
        assert explanation["unknown"] == ""


async def test_other_pools_and_disabled_agents_are_named_as_changes(tmp_path: Path):
    async with open_cluster(tmp_path, resource_pools=[{"pool_name": "default"}, {"pool_name": "big"}]) as cluster:
        await cluster.join("a")
        await cluster.join("b", slots=2, pool="big")
        await cluster.post("/api/v1/agents/a/disable", {"drain": True})
        changes = (await why(cluster, await cluster.create()))["first"]["changes"]
        assert (changes["agents"], changes["pools"]) == (["a"], ["big"])


async def test_the_max_slots_that_would_start_the_trial_is_named(cluster: Cluster):
    agent = await cluster.join(slots=2)
    experiment = await cluster.create(
        CONFIG.replace("{name: single, metric: loss}", "{name: random, metric: loss, max_trials: 2}")
        + "resources: {max_slots: 1}\n"
    )
    await agent.wait_for_desired()
    answer = await why(cluster, experiment)
    assert answer["first"]["changes"]["maxSlots"] == 2
    assert [each["why"] for each in answer["first"]["blockers"]] == ["limit"]


async def test_a_running_trial_has_no_explanation(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = await run_attempt(agent, experiment)
    nothing = {"waiting": 0, "first": None, "notes": []}
    assert await cluster.get(f"/detent/experiments/{experiment}/why") == nothing
    assert await cluster.get("/detent/trials/1/why") == nothing
    task = desired.allocation_id.rpartition(".")[0]
    assert await cluster.get(f"/detent/tasks/{task}/why") == nothing
    assert (await cluster.client.get("/detent/experiments/99/why")).status_code == 404


async def test_slow_starts_of_a_live_container_are_explained_until_it_ends(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    (desired,) = await agent.wait_for_desired()
    note = "image mine holds no byte code of torch: each start compiles the modules that it imports"
    starting = agent.report_of(desired, ContainerState.STARTING).model_copy(update={"start_note": note})
    await cluster.master.agents.on_report(agent.id, [starting])
    # After a restart the agent reports no note; the stored one holds.
    await agent.send_report(desired, ContainerState.RUNNING)
    task = desired.allocation_id.rpartition(".")[0]
    for subject in (f"experiments/{experiment}", "trials/1", f"tasks/{task}"):
        assert (await cluster.get(f"/detent/{subject}/why"))["notes"] == [note]
    await agent.send_report(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=0))
    assert (await cluster.get("/detent/trials/1/why"))["notes"] == []
