"""Checkpoints over HTTP: reports, the folders that the master reads and deletes, and lists."""

import asyncio
import inspect
import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer
from determined.states import CheckpointState
from determined_master.checkpoints import repository
from determined_master.server.app import ROUTERS

UUID, OTHER = checkpoint_uuid(1), checkpoint_uuid(2)
ZIP = {"accept": "application/zip"}


async def run_trial(cluster: Cluster, storage: Path | None = None, config: str = CONFIG) -> DesiredContainer:
    """Runs a new trial whose checkpoints are below ``storage``, by default in the master's folder."""
    agent = FakeAgent(cluster, "one")
    known = {desired.container_id for desired in await agent.desired()}
    if not known:
        await cluster.join(slots=4)
    where = f"checkpoint_storage: {{type: directory, container_path: {storage}}}\n" if storage else ""
    await cluster.create(config + where)
    desired = next(w for w in await agent.wait_for_desired(len(known) + 1) if w.container_id not in known)
    await agent.run(desired)
    return desired


async def delete(cluster: Cluster, *uuids: str) -> tuple[int, str]:
    answer = await cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": uuids})
    return answer.status_code, answer.text


async def request_deletion(cluster: Cluster, desired: DesiredContainer) -> None:
    """Kills the first experiment and asks for its deletion."""
    await cluster.post("/api/v1/experiments/1/kill")
    await FakeAgent(cluster, "one").exit(desired, code=137)

    async def ended() -> bool:
        return await cluster.state(1) == "STATE_CANCELED"

    await eventually(ended)
    assert (await cluster.client.delete("/api/v1/experiments/1")).status_code == 200


async def delete_experiment(cluster: Cluster, desired: DesiredContainer) -> None:
    """Kills the first experiment and deletes it, and waits until it is gone."""
    await request_deletion(cluster, desired)

    async def gone() -> bool:
        return (await cluster.client.get("/api/v1/experiments/1")).status_code == 404

    await eventually(gone)


def own_root(cluster: Cluster) -> Path:
    return cluster.master.settings.data / "checkpoints"


async def test_only_the_trials_own_task_reports_a_checkpoint(cluster: Cluster):
    desired, other = await run_trial(cluster), await run_trial(cluster)
    assert desired.spec is not None
    body = {"uuid": UUID, "taskId": desired.spec.task_id, "metadata": {"steps_completed": 1}}
    mine, others = cluster.as_task(desired.allocation_id), cluster.as_task(other.allocation_id)
    assert (await cluster.post("/api/v1/checkpoints", body)).status_code == 403
    assert (await cluster.post("/api/v1/checkpoints", body, **others)).status_code == 403
    wrong = body | {"allocationId": other.allocation_id}
    assert (await cluster.post("/api/v1/checkpoints", wrong, **mine)).status_code == 403
    assert (await cluster.client.get(f"/api/v1/checkpoints/{UUID}")).status_code == 404
    assert (await cluster.post("/api/v1/checkpoints", body, **mine)).status_code == 200
    assert (await cluster.post("/api/v1/checkpoints", {**body, "taskId": None}, **others)).status_code == 400


@pytest.mark.parametrize("name", ["", ".", "..", "data", "a/b", "../other", UUID.replace("-", ""), UUID + "\n", 7])
async def test_only_a_uuid_names_a_checkpoint(cluster: Cluster, name: object):
    desired = await run_trial(cluster)
    body = {"uuid": name, "metadata": {"steps_completed": 1}}
    answer = await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
    assert answer.status_code == 400
    assert (await delete(cluster, str(name)))[0] == 400
    patch = {"checkpoints": [{"uuid": name, "resources": {"resources": {}}}]}
    assert (await cluster.client.patch("/api/v1/checkpoints", json=patch)).status_code == 400
    async with cluster.master.database.read() as session:
        assert await repository.find(session, str(name)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": {"steps_completed": 2**63}},
        {"metadata": {"steps_completed": 1, "a": "\ud800"}},
        {"resources": {"a": 2**60}},
        {"resources": {"a": -1}},
        {"resources": {"a": 2**53, "b": 1}},
    ],
)
async def test_checkpoint_values_that_cannot_be_stored_are_refused(cluster: Cluster, wrong: dict[str, Any]):
    desired = await run_trial(cluster)
    body = json.dumps({"uuid": UUID, "metadata": {"steps_completed": 1}, **wrong})
    answer = await cluster.client.post(
        "/api/v1/checkpoints", content=body, headers=cluster.as_task(desired.allocation_id)
    )
    assert answer.status_code == 400, answer.text


async def test_a_folder_outside_the_roots_is_neither_read_nor_deleted(cluster: Cluster, tmp_path: Path):
    desired = await run_trial(cluster, tmp_path / "outside")
    folder = store_checkpoint(tmp_path / "outside", UUID, weights=b"abc")
    await report_checkpoint(cluster, desired.allocation_id, UUID)
    answer = await cluster.client.get(f"/checkpoints/{UUID}")
    assert (answer.status_code, "checkpoint_roots" in answer.text) == (400, True)
    await request_deletion(cluster, desired)
    # A task with the rights of the owner removes the files; the master never does.
    (task,) = await FakeAgent(cluster, "one").wait_for_desired()
    assert task.spec is not None
    assert (task.spec.task_type, task.spec.owner) == ("CHECKPOINT_GC", "admin")
    assert await cluster.state(1) == "STATE_DELETING"
    assert (folder / "weights").read_bytes() == b"abc"
    assert (await cluster.get("/detent/events", kind="folders_left"))["events"] == []


async def test_the_master_reads_and_deletes_below_a_configured_checkpoint_root(tmp_path: Path):
    async with open_cluster(tmp_path, checkpoint_roots=[tmp_path / "outside"]) as cluster:
        desired = await run_trial(cluster, tmp_path / "outside" / "team")
        folder = store_checkpoint(tmp_path / "outside" / "team", UUID, weights=b"abc")
        (folder / ".hashes.json").write_text("{}")
        await report_checkpoint(cluster, desired.allocation_id, UUID)
        answer = await cluster.client.get(f"/checkpoints/{UUID}")
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
            assert sorted(archive.getnames()) == ["metadata.json", "weights"]
        assert (await delete(cluster, UUID))[0] == 200
        assert not folder.exists()


async def test_deleting_removes_checkpoints_and_nothing_else(cluster: Cluster, tmp_path: Path):
    """A folder without metadata, one behind a link, and that of a row with an older name stay."""
    desired = await run_trial(cluster)
    assert desired.spec is not None
    mine = store_checkpoint(own_root(cluster), UUID)
    foreign = own_root(cluster) / OTHER
    foreign.mkdir()
    behind = store_checkpoint(tmp_path / "elsewhere", checkpoint_uuid(3))
    (own_root(cluster) / checkpoint_uuid(3)).symlink_to(behind)
    older = store_checkpoint(own_root(cluster), "older")
    for uuid in (UUID, OTHER, checkpoint_uuid(3)):
        await report_checkpoint(cluster, desired.allocation_id, uuid)
    async with cluster.master.database.write() as session:
        row = await repository.get(session, UUID)
        await repository.add(
            session,
            uuid="older",
            task_id=desired.spec.task_id,
            allocation_id="",
            state=CheckpointState.COMPLETED,
            steps_completed=1,
            report_time=row.report_time,
            resources={},
            meta={},
            size=0,
        )
    for path in ("/checkpoints/older", "/api/v1/checkpoints/older"):
        assert (await cluster.client.get(path)).status_code == 404
    assert (await delete(cluster, "older"))[0] == 400
    assert (await delete(cluster, OTHER))[0] == 400
    assert (await cluster.client.get(f"/checkpoints/{checkpoint_uuid(3)}")).status_code == 400
    await delete_experiment(cluster, desired)
    assert [mine.exists(), foreign.exists(), behind.exists(), older.exists()] == [False, True, True, True]
    (removal,) = (await cluster.get("/detent/events", kind="folders_left"))["events"]
    assert "files of 3 checkpoints could not be deleted" in removal["text"]


async def test_files_that_cannot_be_removed_are_reported_and_removed_by_the_next_request(cluster: Cluster):
    desired = await run_trial(cluster)
    folder = store_checkpoint(own_root(cluster), UUID)
    obstacle = folder.with_name(f"{UUID}.deleted")
    obstacle.write_text("in the way")
    await report_checkpoint(cluster, desired.allocation_id, UUID)
    status, text = await delete(cluster, UUID)
    assert status == 500
    assert "could not be removed (Not a directory)" in text
    obstacle.unlink()
    assert (await delete(cluster, UUID))[0] == 200
    assert not folder.exists()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/experiments/{}/checkpoints",
        "/api/v1/trials/{}/checkpoints",
        "/detent/experiments/{}/checkpoints",
        "/detent/checkpoints?experimentId={}",
    ],
)
async def test_a_number_beyond_64_bits_is_a_bad_request(cluster: Cluster, path: str):
    assert (await cluster.client.get(path.format(2**63))).status_code == 400
    assert (await cluster.client.get(path.format(2**63 - 1))).status_code in (200, 404)


@contextmanager
def reader_released(pipe: Path) -> Iterator[None]:
    """Releases readers of the pipe afterwards, so that a failed test ends."""
    try:
        yield
    finally:
        for _ in range(100):
            os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


async def test_a_pipe_in_a_checkpoint_folder_blocks_no_download(cluster: Cluster):
    desired = await run_trial(cluster)
    folder = store_checkpoint(own_root(cluster), UUID)
    os.mkfifo(folder / "pipe")
    await report_checkpoint(cluster, desired.allocation_id, UUID)
    with reader_released(folder / "pipe"):
        downloads = [asyncio.create_task(cluster.client.get(f"/checkpoints/{UUID}", headers=ZIP)) for _ in range(41)]
        try:
            _, pending = await asyncio.wait(downloads, timeout=10)
            health = await asyncio.wait_for(cluster.client.get("/health"), 10)
            assert health.status_code == 200
            assert len(pending) == 0
            assert {task.result().status_code for task in downloads} == {200}
        finally:
            for task in downloads:
                task.cancel()


def dependencies(of: Dependant) -> Iterator[Dependant]:
    yield of
    for each in of.dependencies:
        yield from dependencies(each)


def test_no_route_waits_for_a_thread():
    """A synchronous route runs in a pool of 40 threads, and slow requests may hold all of them."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert len(routes) > 80
    blocking = {
        f"{route.path}: {getattr(each.call, '__qualname__', each.call)}"
        for route in routes
        for each in dependencies(route.dependant)
        if each.call and not (inspect.iscoroutinefunction(each.call) or inspect.isasyncgenfunction(each.call))
    }
    assert blocking == set()


async def add_checkpoints(cluster: Cluster, count: int, config: str = CONFIG) -> None:
    """Adds checkpoints: number n has 100 - n steps, and an even n has a validation whose loss is n."""
    desired = await run_trial(cluster, config=config)
    task = cluster.as_task(desired.allocation_id)
    for number in range(count):
        await report_checkpoint(cluster, desired.allocation_id, checkpoint_uuid(number), steps=100 - number)
        if number % 2 == 0:
            metrics = {"avgMetrics": {"loss": float(number), 'o"d': -float(number), "text": "x"}}
            report = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 100 - number, "metrics": metrics}
            answer = await cluster.post("/api/v1/trials/1/metrics", {"group": "validation", "metrics": report}, **task)
            assert answer.status_code == 200, answer.text


async def test_checkpoints_by_another_metric_are_best_first_as_its_goal_says(cluster: Cluster):
    goals = "metric_goals: {'o\"d': maximize, never reported: minimize}\n"
    await add_checkpoints(cluster, 6, CONFIG + goals)

    for path in ("/api/v1/experiments/1/checkpoints", "/api/v1/trials/1/checkpoints"):
        for metric in ('o"d', "loss"):
            checkpoints = (await cluster.get(path, sortByMetric=metric))["checkpoints"]
            assert [each["uuid"] for each in checkpoints][:3] == [checkpoint_uuid(number) for number in (0, 2, 4)]
    (summary,) = (await cluster.post("/detent/trials/summaries", {"trialIds": [1]})).json()["trials"]
    directions = {each["name"]: each["smallerIsBetter"] for each in summary["metrics"]}
    assert directions == {"loss": True, 'o"d': False, "text": None}


async def test_checkpoints_by_a_searcher_metric_of_which_larger_is_better_are_best_first(cluster: Cluster):
    larger = CONFIG.replace("metric: loss", "metric: loss, smaller_is_better: false")
    assert larger != CONFIG
    await add_checkpoints(cluster, 6, larger)

    async def first(**query: str) -> list[str]:
        checkpoints = (await cluster.get("/api/v1/experiments/1/checkpoints", **query))["checkpoints"]
        return [each["uuid"] for each in checkpoints][:3]

    best_first = [checkpoint_uuid(number) for number in (4, 2, 0)]
    assert await first(sortByAttr="SORT_BY_SEARCHER_METRIC") == best_first
    assert await first(sortByMetric="loss") == best_first
    assert await first(sortByMetric="loss", orderBy="ORDER_BY_ASC") == best_first[::-1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [5, 4, 3, 2, 1, 0]),
        ({"orderBy": "ORDER_BY_DESC"}, [0, 1, 2, 3, 4, 5]),
        ({"sortByAttr": "SORT_BY_UUID"}, [0, 1, 2, 3, 4, 5]),
        ({"sortByAttr": "SORT_BY_END_TIME"}, [0, 1, 2, 3, 4, 5]),
        ({"sortByAttr": "SORT_BY_SEARCHER_METRIC"}, [0, 2, 4, 5, 3, 1]),
        ({"sortByAttr": "SORT_BY_SEARCHER_METRIC", "orderBy": "ORDER_BY_DESC"}, [4, 2, 0, 1, 3, 5]),
        ({"sortByMetric": 'o"d'}, [4, 2, 0, 5, 3, 1]),
        ({"sortByMetric": "text"}, [5, 4, 3, 2, 1, 0]),
        ({"states": "STATE_DELETED"}, [1]),
        ({"limit": "-2"}, []),
        ({"offset": "-2"}, [1, 0]),
        ({"limit": str(2**70), "offset": "4"}, [1, 0]),
        ({"offset": str(2**70)}, []),
    ],
)
async def test_lists_of_checkpoints_are_sorted_and_paged(cluster: Cluster, query: dict[str, str], expected: list[int]):
    """Checkpoints without the metric come last, in either order."""
    await add_checkpoints(cluster, 6)
    assert (await delete(cluster, checkpoint_uuid(1)))[0] == 200
    checkpoints = (await cluster.get("/api/v1/experiments/1/checkpoints", **query))["checkpoints"]
    assert [each["uuid"] for each in checkpoints] == [checkpoint_uuid(number) for number in expected]
    for each in checkpoints:
        number = int(each["uuid"][-4:], 16)
        assert each["training"]["searcherMetric"] == (None if number % 2 else float(number))


async def test_a_deleted_checkpoint_keeps_its_list_of_files(cluster: Cluster):
    desired = await run_trial(cluster)
    for name in (UUID, OTHER):
        store_checkpoint(own_root(cluster), name, weights=b"abc")
        await report_checkpoint(cluster, desired.allocation_id, name)
    files = (await cluster.get(f"/api/v1/checkpoints/{UUID}"))["checkpoint"]["resources"]
    assert sum(map(int, files.values())) > 0
    assert (await delete(cluster, UUID))[0] == 200
    by_its_task = {"checkpoints": [{"uuid": OTHER, "resources": {"resources": {}}}]}
    task = cluster.as_task(desired.allocation_id)
    assert (await cluster.client.patch("/api/v1/checkpoints", json=by_its_task, headers=task)).status_code == 200
    for name in (UUID, OTHER):
        checkpoint = (await cluster.get(f"/api/v1/checkpoints/{name}"))["checkpoint"]
        assert (checkpoint["state"], checkpoint["resources"]) == ("STATE_DELETED", files)
    listed = (await cluster.get("/detent/checkpoints"))["checkpoints"]
    assert {each["size"] for each in listed} == {sum(map(int, files.values()))}


async def test_a_trial_whose_newest_checkpoint_lost_files_starts_and_counts_from_the_one_before(cluster: Cluster):
    desired = await run_trial(cluster)
    for steps, name in enumerate((UUID, OTHER, checkpoint_uuid(3)), start=1):
        await report_checkpoint(cluster, desired.allocation_id, name, steps)
    task = cluster.as_task(desired.allocation_id)
    changes: tuple[tuple[str, dict[str, int]], ...] = ((checkpoint_uuid(3), {}), (OTHER, {"weights": 1}))
    for name, left in changes:
        body = {"checkpoints": [{"uuid": name, "resources": {"resources": left}}]}
        assert (await cluster.client.patch("/api/v1/checkpoints", json=body, headers=task)).status_code == 200
    trial = (await cluster.get("/api/v1/trials/1"))["trial"]
    assert (trial["checkpointCount"], trial["totalCheckpointSize"]) == (2, "4")
    assert (await cluster.get("/detent/trials/1/progress"))["latestCheckpoint"] == UUID
    config = CONFIG.replace("metric: loss}", "metric: loss, source_trial_id: 1}")
    second = await cluster.create(config, activate=False)
    (started,) = (await cluster.get(f"/api/v1/experiments/{second}/trials"))["trials"]
    assert started["warmStartCheckpointUuid"] == UUID
