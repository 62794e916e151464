"""Status, timeline and marks of a real experiment, from its queue to its end."""

from typing import Any

from tests.support.checkpoints import checkpoint_uuid
from tests.support.cluster import CONFIG, Cluster
from tests.support.seeded_cluster import seed_cluster
from tests.support.waiting import eventually

STATUS = "/detent/experiments/1/status"


async def status(cluster: Cluster) -> Any:
    return await cluster.get(STATUS)


async def reaches(cluster: Cluster, state: str) -> Any:
    """Waits until the experiment is in a state; returns its status."""

    async def in_state() -> Any:
        current = await status(cluster)
        return current if current["state"] == f"STATE_{state}" else None

    return await eventually(in_state)


async def test_status_and_timeline_follow_an_experiment_from_its_queue_to_its_end(cluster: Cluster):
    await cluster.create()
    queued = await reaches(cluster, "QUEUED")
    assert queued["text"].startswith("queued")
    assert queued["can"]["pause"]
    assert not queued["can"]["activate"]
    assert queued["why"]["activate"] == "it is active"
    assert queued["etaSeconds"] is None
    assert queued["ranSeconds"] == 0
    assert queued["submittedAt"] == (await cluster.get("/api/v1/experiments/1"))["experiment"]["startTime"]
    agent = await cluster.join()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    running = await reaches(cluster, "RUNNING")
    assert running["text"] == "running"
    task = cluster.as_task(desired.allocation_id)
    await cluster.post("/api/v1/trials/1/progress", {"progress": 0.5}, **task)
    half = await status(cluster)
    assert half["progress"] == 0.5
    assert half["etaSeconds"] > 0
    assert half["trials"][0]["progress"] == 0.5
    await cluster.post("/api/v1/experiments/1/pause")
    pausing = await status(cluster)
    assert (pausing["state"], pausing["text"]) == ("STATE_PAUSING", "pausing: waiting for checkpoint")
    assert pausing["trials"][0]["state"] == "STATE_PAUSING"
    assert pausing["etaSeconds"] is None
    assert pausing["can"]["activate"]
    name = desired.allocation_id.rpartition(".")[0]
    saved = {"uuid": checkpoint_uuid(1), "taskId": name, "metadata": {"steps_completed": 7}}
    await cluster.post("/api/v1/checkpoints", saved, **task)
    await cluster.post(f"/api/v1/allocations/{desired.allocation_id}/signals/ack_preemption", {}, **task)
    assert (await status(cluster))["text"] == "pausing: saved, exiting"
    await agent.exit(desired)
    paused = await status(cluster)
    assert paused["waitedSeconds"] > 0
    assert paused["ranSeconds"] > 0
    later = await status(cluster)
    assert (later["waitedSeconds"], later["ranSeconds"]) == (paused["waitedSeconds"], paused["ranSeconds"])
    listed = await cluster.post("/detent/experiments/search", {"columns": ["ran"]})
    assert listed.json()["experiments"][0]["times"]["ranSeconds"] == paused["ranSeconds"]
    assert listed.json()["unknownColumns"] == []
    assert (paused["state"], paused["text"]) == ("STATE_PAUSED", "paused")
    await cluster.post("/api/v1/experiments/1/activate")
    again = (await agent.wait_for_desired())[0]
    await agent.run(again)
    await agent.exit(again)
    ended = await reaches(cluster, "COMPLETED")
    assert ended["can"] == {
        **dict.fromkeys(("pause", "activate", "cancel", "kill", "unarchive"), False),
        **dict.fromkeys(("archive", "delete", "fork", "continue"), True),
    }
    await _check_timeline(cluster)


async def _check_timeline(cluster: Cluster) -> None:
    """Checks the timeline of the experiment above, which was paused once."""
    timeline = await cluster.get("/detent/experiments/1/timeline")
    kinds = [segment["kind"] for segment in timeline["segments"]]
    assert [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before] == [
        "queued",
        "starting",
        "running",
        "pausing",
        "paused",
        "queued",
        "starting",
        "running",
        "ended",
    ]
    assert timeline["segments"][-1]["to"] is None
    assert [m["kind"] for m in timeline["marks"]] == ["created", "pause", "checkpoint", "activate", "ended"]
    middle = timeline["segments"][4]
    part = await cluster.get("/detent/experiments/1/timeline", **{"from": middle["from"], "to": middle["from"]})
    assert 1 <= len(part["segments"]) <= 2
    marks = (await cluster.get("/detent/trials/1/marks"))["marks"]
    assert [(m["kind"], m["steps"], m["runId"]) for m in marks] == [("pause", 7, 1), ("checkpoint", 7, 1)]


async def test_a_restart_is_a_mark_on_the_trials_curve(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    await seeded.played_agent.exit(seeded.desired, code=1)
    await seeded.played_agent.wait_for_desired()
    marks = (await cluster.get("/detent/trials/1/marks"))["marks"]
    assert [(m["kind"], m["steps"], m["runId"]) for m in marks] == [("checkpoint", 2, 1), ("restart", 2, 2)]
    assert "attempt 1" in marks[1]["text"]
    assert (await status(cluster))["trials"][0]["restarts"] == 1


async def test_status_timeline_and_marks_of_unknown_ids_answer_404(cluster: Cluster):
    for path in ("experiments/9/status", "experiments/9/timeline", "trials/9/marks"):
        assert (await cluster.client.get(f"/detent/{path}")).status_code == 404


async def test_an_action_that_is_not_offered_is_refused(cluster: Cluster):
    await cluster.create(CONFIG, activate=False)
    for verb in ("archive", "delete", "unarchive"):
        method = "DELETE" if verb == "delete" else "POST"
        path = "/api/v1/experiments/1" + ("" if verb == "delete" else f"/{verb}")
        can = (await status(cluster))["can"][verb]
        assert not can
        assert (await cluster.client.request(method, path, json={})).status_code == 400
