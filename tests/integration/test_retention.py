"""Checkpoint retention of ended experiments: in each storage, after failures, and after changes of the policy."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import Cluster, FakeAgent, open_cluster
from tests.support.makers import NOON, add_experiment, add_trial, effective
from tests.support.waiting import eventually

from determined.exec import gc_checkpoints
from determined.link.messages import DesiredContainer
from determined.states import CheckpointState
from determined_master.checkpoints import removal, retention_repository
from determined_master.checkpoints import repository as checkpoints
from determined_master.loops import checkpoint_removal, retention
from determined_master.tasks import repository as tasks

LOSSES: dict[int, list[float | None]] = {1: [None, None, 0.6, 0.5, 0.4], 2: [None, 0.2, 0.3, None, None]}
CONFIG = """
name: kept
entrypoint: python3 run.py
searcher: {name: grid, metric: loss}
hyperparameters: {x: {type: categorical, vals: [1, 2]}}
checkpoint_storage: {%s}
"""
OWN = "save_experiment_best: %d, save_trial_best: %d, save_trial_latest: %d"


async def worked_example(cluster: Cluster, storage: str, root: Path) -> None:
    """Runs two trials with ten checkpoints, as in the worked example of the rule, to the end."""
    agent = await cluster.join(slots=2)
    await cluster.create(CONFIG % storage)
    containers = await agent.wait_for_desired(2)
    trials = {each["taskId"]: each["id"] for each in (await cluster.get("/api/v1/experiments/1/trials"))["trials"]}
    for desired in containers:
        assert desired.spec is not None
        trial = trials[desired.spec.task_id]
        await agent.run(desired)
        task = cluster.as_task(desired.allocation_id)
        for steps, loss in enumerate(LOSSES[trial], 1):
            uuid = checkpoint_uuid(5 * (trial - 1) + steps)
            store_checkpoint(root, uuid, steps, weights=b"abc")
            await report_checkpoint(cluster, desired.allocation_id, uuid, steps)
            if loss is not None:
                metrics = {"trial_id": trial, "trial_run_id": 1, "steps_completed": steps}
                body = {"group": "validation", "metrics": metrics | {"metrics": {"avg_metrics": {"loss": loss}}}}
                answer = await cluster.post(f"/api/v1/trials/{trial}/metrics", body, **task)
                assert answer.status_code == 200, answer.text
    for desired in containers:
        await agent.exit(desired)


async def wait_for_completion(cluster: Cluster) -> None:
    async def is_ended() -> bool:
        return await cluster.state(1) == "STATE_COMPLETED"

    await eventually(is_ended)


def stored_numbers(root: Path) -> set[int]:
    """Returns the numbers of the checkpoints whose folders exist, including half-removed ones."""
    return {int(folder.name.partition(".")[0][-12:], 16) for folder in root.iterdir()}


async def listed_numbers(cluster: Cluster) -> set[int]:
    """Returns the numbers of the checkpoints that the master lists as completed."""
    answer = await cluster.get("/api/v1/experiments/1/checkpoints", states=["STATE_COMPLETED"], limit=100)
    return {int(each["uuid"][-12:], 16) for each in answer["checkpoints"]}


async def wait_for_numbers(cluster: Cluster, root: Path, numbers: set[int]) -> None:
    await eventually(lambda: stored_numbers(root) == numbers)

    async def listed() -> bool:
        return await listed_numbers(cluster) == numbers

    await eventually(listed)


async def check_named_count(cluster: Cluster, count: int) -> None:
    """Asserts that the events of the policy name so many checkpoints in all."""
    events = (await cluster.get("/detent/events", kind="checkpoints_deleted"))["events"]
    assert sum(each["payload"]["count"] for each in events) == count


def own_root(cluster: Cluster) -> Path:
    return cluster.master.settings.data / "checkpoints"


@pytest.mark.parametrize("kind", ["shared_fs", pytest.param("directory", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("policy", "expected"), [((0, 0, 0), set()), ((0, 0, 3), {10, 9, 8, 5, 4, 3}), ((2, 1, 1), {10, 8, 7, 5})]
)
async def test_the_policy_keeps_the_checkpoints_of_the_worked_example(
    tmp_path: Path, kind: str, policy: tuple[int, int, int], expected: set[int]
) -> None:
    root = tmp_path / "storage"
    option = f"host_path: {root}" if kind == "shared_fs" else f"container_path: {root}"
    async with open_cluster(tmp_path, checkpoint_roots=[root]) as cluster:
        root.mkdir()
        await worked_example(cluster, f"type: {kind}, {option}, {OWN % policy}", root)
        await wait_for_numbers(cluster, root, expected)
        trials = (await cluster.get("/api/v1/experiments/1/trials"))["trials"]
        assert [each["checkpointCount"] for each in sorted(trials, key=lambda each: each["id"])] == [
            len([n for n in expected if n <= 5]),
            len([n for n in expected if n > 5]),
        ]


async def test_the_default_policy_keeps_the_best_and_the_newest_checkpoint_of_each_trial(cluster: Cluster) -> None:
    await worked_example(cluster, "", own_root(cluster))
    await wait_for_numbers(cluster, own_root(cluster), {10, 7, 5})
    (event,) = (await cluster.get("/detent/events", kind="checkpoints_deleted"))["events"]
    assert "7 checkpoints" in event["text"]


async def test_a_master_that_ends_while_it_removes_files_goes_on_at_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data" / "checkpoints"

    async def cut_off(_database: object, _clock: object, roots: Any, to_remove: Any) -> None:
        for each in to_remove[:3]:
            removal.remove(each.storage, each.uuid, roots)
        raise RuntimeError("a test's: nothing is recorded")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_removal, "remove_files", cut_off)
        async with open_cluster(tmp_path) as cluster:
            await worked_example(cluster, OWN % (0, 1, 1), root)
            await eventually(lambda: len(stored_numbers(root)) == 7)
    async with open_cluster(tmp_path) as cluster:
        await wait_for_numbers(cluster, root, {10, 7, 5})


async def test_a_master_that_ends_while_it_marks_checkpoints_goes_on_at_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data" / "checkpoints"
    with monkeypatch.context() as patched:
        patched.setattr(retention, "BATCH_CHECKPOINTS", 2)
        marked: list[str] = []
        mark = retention.trial_checkpoints.mark_deleting

        async def once(*arguments: Any) -> None:
            marked.append("")
            if len(marked) > 3:
                raise RuntimeError("a test's")
            await mark(*arguments)

        patched.setattr(retention.trial_checkpoints, "mark_deleting", once)
        async with open_cluster(tmp_path) as cluster:
            await worked_example(cluster, OWN % (0, 1, 1), root)
            await eventually(lambda: len(marked) > 3)
    async with open_cluster(tmp_path) as cluster:
        await wait_for_numbers(cluster, root, {10, 7, 5})
        await check_named_count(cluster, 7)


async def test_a_master_that_ends_after_marking_names_all_checkpoints_that_it_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data" / "checkpoints"
    with monkeypatch.context() as patched:
        reached: list[str] = []

        async def ends(*_arguments: Any) -> None:
            reached.append("")
            raise RuntimeError("a test's")

        patched.setattr(retention.retention_repository, "clear_due", ends)
        async with open_cluster(tmp_path) as cluster:
            await worked_example(cluster, OWN % (0, 1, 1), root)
            await eventually(lambda: bool(reached))
    async with open_cluster(tmp_path) as cluster:
        await wait_for_numbers(cluster, root, {10, 7, 5})
        await check_named_count(cluster, 7)


async def test_a_smaller_policy_is_previewed_and_applied(cluster: Cluster) -> None:
    await worked_example(cluster, OWN % (2, 1, 1), own_root(cluster))
    await wait_for_numbers(cluster, own_root(cluster), {10, 8, 7, 5})
    policy = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 1}
    preview = await cluster.get("/experiments/1/preview_gc", **policy)
    assert preview["metric_name"] == "loss"
    assert [(each["TrialID"], each["StepsCompleted"], each["State"]) for each in preview["checkpoints"]] == [
        (2, 2, "COMPLETED"),
        (2, 3, "COMPLETED"),
    ]
    assert preview["checkpoints"][0]["ValidationMetrics"] == {"loss": 0.2}
    assert stored_numbers(own_root(cluster)) == {10, 8, 7, 5}
    changes = {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 1}}
    assert (await cluster.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    await wait_for_numbers(cluster, own_root(cluster), {10, 5})
    assert (await cluster.get("/experiments/1/preview_gc"))["checkpoints"] == []


async def test_a_policy_that_changes_while_it_is_applied_is_applied_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = cluster.master.settings.data / "checkpoints"
    candidates, changed = retention_repository.candidates, []

    async def read_and_change(session: Any, experiment_id: int) -> Any:
        rows = await candidates(session, experiment_id)
        if not changed:
            changed.append(True)
            smaller = {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}
            answer = await cluster.client.patch("/api/v1/experiments/1", json={"checkpointStorage": smaller})
            assert answer.status_code == 200, answer.text
        return rows

    monkeypatch.setattr(retention_repository, "candidates", read_and_change)
    await worked_example(cluster, OWN % (1, 1, 1), root)
    await wait_for_completion(cluster)
    await eventually(lambda: stored_numbers(root) == set())


async def test_a_checkpoint_that_another_trial_was_started_from_is_kept(cluster: Cluster) -> None:
    await worked_example(cluster, OWN % (0, 3, 3), own_root(cluster))
    await wait_for_numbers(cluster, own_root(cluster), {10, 9, 8, 7, 5, 4, 3})
    config = f"""
name: next
entrypoint: python3 run.py
searcher: {{name: single, metric: loss, source_checkpoint_uuid: {checkpoint_uuid(4)}}}
hyperparameters: {{}}
"""
    await cluster.create(config, activate=False)
    changes = {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}}
    assert (await cluster.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    await wait_for_numbers(cluster, own_root(cluster), {4})


async def removal_task(cluster: Cluster, root: Path) -> tuple[FakeAgent, DesiredContainer, dict[str, Any]]:
    """Runs the worked example in a storage out of the master's reach, up to the task that removes the files.

    Returns the agent, the container of the task and its order.
    """
    root.mkdir()
    await worked_example(cluster, f"type: directory, container_path: {root}, {OWN % (0, 0, 2)}", root)
    await wait_for_completion(cluster)
    agent = FakeAgent(cluster, "one")
    desired = (await agent.wait_for_desired())[0]
    assert desired.spec is not None
    assert (desired.spec.owner, desired.spec.slots) == ("admin", [])
    assert desired.spec.entrypoint == ["python3", "-m", "determined.exec.gc_checkpoints"]
    await agent.run(desired)
    return agent, desired, dict(json.loads(desired.spec.environment["DETENT_CHECKPOINTS_TO_REMOVE"]))


async def test_a_storage_out_of_reach_is_cleaned_up_by_a_task_of_the_owner(cluster: Cluster, tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    agent, desired, order = await removal_task(cluster, root)
    assert order["storage"] == {"type": "directory", "container_path": str(root)}
    assert {int(uuid[-12:], 16) for uuid in order["uuids"]} == {1, 2, 3, 6, 7, 8}
    assert gc_checkpoints.remove(order["storage"], order["uuids"], {}) == {}
    pending = (await cluster.get(f"/api/v1/checkpoints/{order['uuids'][0]}"))["checkpoint"]
    assert (pending["state"], pending["displayState"]) == ("STATE_DELETED", "STATE_DELETING")
    assert desired.spec is not None
    assert pending["removalTaskId"] == desired.spec.task_id
    stranger = {"removed": [], "failed": {checkpoint_uuid(4): "not mine to say"}}
    gone = checkpoint_uuid(99)  # as of an experiment that was deleted meanwhile
    mine = {"removed": [gone, *order["uuids"][1:]], "failed": {order["uuids"][0]: "it is held"}}
    for body, code in ((stranger, 403), (mine, 200), (mine, 200)):
        answer = await cluster.post("/detent/checkpoints/removed", body, **cluster.as_task(desired.allocation_id))
        assert answer.status_code == code, answer.text
    await agent.exit(desired)
    await wait_for_numbers(cluster, root, {4, 5, 9, 10})
    checkpoint = (await cluster.get(f"/api/v1/checkpoints/{order['uuids'][0]}"))["checkpoint"]
    assert (checkpoint["state"], checkpoint["deleteError"]) == ("STATE_PARTIALLY_DELETED", "it is held")
    assert checkpoint["displayState"] == "STATE_DELETE_FAILED"


async def test_checkpoints_whose_removal_task_was_killed_show_the_reason(cluster: Cluster, tmp_path: Path) -> None:
    agent, desired, order = await removal_task(cluster, tmp_path / "elsewhere")
    assert desired.spec is not None
    async with cluster.master.database.write() as session:
        await cluster.master.tasks.kill(session, await tasks.get(session, desired.spec.task_id), "admin")
    await agent.exit(desired, code=137)

    async def error() -> str:
        checkpoint = (await cluster.get(f"/api/v1/checkpoints/{order['uuids'][0]}"))["checkpoint"]
        return str(checkpoint.get("deleteError") or "")

    assert (await eventually(error)).startswith("the task that removes its files ended before: it was killed")
    # The user deletes it again: another task removes this checkpoint only.
    answer = await cluster.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": order["uuids"][:1]})
    assert answer.status_code == 200, answer.text

    async def next_desired() -> DesiredContainer | None:
        return next((each for each in await agent.desired() if each.container_id != desired.container_id), None)

    again = await eventually(next_desired)
    assert again.spec is not None
    assert json.loads(again.spec.environment["DETENT_CHECKPOINTS_TO_REMOVE"])["uuids"] == order["uuids"][:1]


def test_a_machine_without_the_folder_removes_nothing(tmp_path: Path) -> None:
    storage = {"type": "directory", "container_path": str(tmp_path / "missing")}
    failed = gc_checkpoints.remove(storage, [checkpoint_uuid(1)], {})
    assert "missing is not on this machine" in failed[checkpoint_uuid(1)]


async def test_files_that_retention_cannot_remove_are_reported_and_removed_by_the_next_request(
    cluster: Cluster,
) -> None:
    await cluster.join()
    obstacle = own_root(cluster) / f"{checkpoint_uuid(1)}.deleted"
    own_root(cluster).mkdir(parents=True, exist_ok=True)
    obstacle.write_text("in the way")
    await worked_example(cluster, OWN % (0, 1, 1), own_root(cluster))

    async def failed_checkpoints() -> list[dict[str, Any]]:
        answer = await cluster.get("/detent/experiments/1/checkpoints", state=["STATE_DELETE_FAILED"])
        return list(answer["checkpoints"])

    (failed,) = await eventually(failed_checkpoints)
    assert failed["deleteError"] == "its files could not be removed (Not a directory)"
    official = (await cluster.get(f"/api/v1/checkpoints/{checkpoint_uuid(1)}"))["checkpoint"]
    assert (official["state"], official["deleteError"]) == ("STATE_PARTIALLY_DELETED", failed["deleteError"])
    obstacle.unlink()
    answer = await cluster.client.request(
        "DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(1)]}
    )
    assert answer.status_code == 200, answer.text
    await wait_for_numbers(cluster, own_root(cluster), {10, 7, 5})
    gone = (await cluster.get(f"/api/v1/checkpoints/{checkpoint_uuid(1)}"))["checkpoint"]
    assert (gone["state"], gone["deleteError"], gone["resources"]) == ("STATE_DELETED", None, {"weights": "3"})


async def test_files_that_are_gone_already_are_no_error(cluster: Cluster) -> None:
    await worked_example(cluster, OWN % (0, 10, 10), own_root(cluster))
    await wait_for_numbers(cluster, own_root(cluster), set(range(1, 11)))
    for number in (1, 2):
        folder = own_root(cluster) / checkpoint_uuid(number)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    changes = {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 1, "saveTrialLatest": 1}}
    assert (await cluster.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    await wait_for_numbers(cluster, own_root(cluster), {10, 7, 5})


async def test_checkpoints_in_reach_do_not_wait_for_those_for_which_no_task_can_be_started(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_arguments: object) -> None:
        raise RuntimeError("a test's")

    monkeypatch.setattr(checkpoint_removal.CheckpointRemoval, "_assign_to_task", fails)
    monkeypatch.setattr(checkpoint_removal.checkpoint_removal, "MAX_CHECKPOINTS", 2)
    async with cluster.master.database.write() as session:
        for number, folder in enumerate((tmp_path / "far", cluster.master.settings.data / "checkpoints")):
            storage = {"type": "directory", "container_path": str(folder)}
            row = await add_experiment(session, config=effective() | {"checkpoint_storage": storage})
            trial = await add_trial(session, row)
            for each in range(3):
                await checkpoints.add(
                    session,
                    uuid=checkpoint_uuid(10 * number + each),
                    task_id=trial.task_id,
                    allocation_id="",
                    state=CheckpointState.DELETING,
                    steps_completed=1,
                    report_time=NOON,
                    resources={},
                    meta={},
                    size=0,
                )
    await checkpoint_removal.CheckpointRemoval(cluster.master).tick()
    async with cluster.master.database.read() as session:
        states = [(await checkpoints.get(session, checkpoint_uuid(number))).state for number in (0, 1, 2, 10, 11, 12)]
    assert states == [CheckpointState.DELETING] * 3 + [CheckpointState.DELETED] * 3
