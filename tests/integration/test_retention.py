"""Checkpoint retention: what an ended experiment keeps, in which storage, after which failures."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint, store_checkpoint
from tests.support.cluster import Cluster, FakeAgent, cluster
from tests.support.waiting import eventually

from determined.exec import gc_checkpoints
from determined.link.messages import DesiredContainer
from determined_master.checkpoints import removal, retention_repository
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


async def worked_example(one: Cluster, storage: str, root: Path) -> None:
    """Runs two trials with ten checkpoints, as in the worked example of the rule, to the end."""
    agent = await one.join(slots=2)
    await one.create(CONFIG % storage)
    wishes = await agent.wished(2)
    trials = {each["taskId"]: each["id"] for each in (await one.get("/api/v1/experiments/1/trials"))["trials"]}
    for wish in wishes:
        assert wish.spec is not None
        trial = trials[wish.spec.task_id]
        await agent.run(wish)
        task = one.as_task(wish.allocation_id)
        for steps, loss in enumerate(LOSSES[trial], 1):
            uuid = checkpoint_uuid(5 * (trial - 1) + steps)
            store_checkpoint(root, uuid, steps, weights=b"abc")
            await report_checkpoint(one, wish.allocation_id, uuid, steps)
            if loss is not None:
                metrics = {"trial_id": trial, "trial_run_id": 1, "steps_completed": steps}
                body = {"group": "validation", "metrics": metrics | {"metrics": {"avg_metrics": {"loss": loss}}}}
                answer = await one.post(f"/api/v1/trials/{trial}/metrics", body, **task)
                assert answer.status_code == 200, answer.text
    for wish in wishes:
        await agent.exit(wish)


async def ended(one: Cluster) -> None:
    async def is_ended() -> bool:
        return await one.state(1) == "STATE_COMPLETED"

    await eventually(is_ended)


def there(root: Path) -> set[int]:
    """Numbers of the checkpoints whose folders exist, half-removed ones included."""
    return {int(folder.name.partition(".")[0][-12:], 16) for folder in root.iterdir()}


async def kept(one: Cluster) -> set[int]:
    """Numbers of the checkpoints that the master lists as completed."""
    found = await one.get("/api/v1/experiments/1/checkpoints", states=["STATE_COMPLETED"], limit=100)
    return {int(each["uuid"][-12:], 16) for each in found["checkpoints"]}


async def becomes(one: Cluster, root: Path, numbers: set[int]) -> None:
    await eventually(lambda: there(root) == numbers)

    async def listed() -> bool:
        return await kept(one) == numbers

    await eventually(listed)


async def named(one: Cluster, count: int) -> None:
    """Asserts that the events of the policy name so many checkpoints in all."""
    found = (await one.get("/detent/events", kind="checkpoints_deleted"))["events"]
    assert sum(each["payload"]["count"] for each in found) == count


def own_root(one: Cluster) -> Path:
    return one.master.settings.data / "checkpoints"


@pytest.mark.parametrize("kind", ["shared_fs", pytest.param("directory", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("policy", "expected"), [((0, 0, 0), set()), ((0, 0, 3), {10, 9, 8, 5, 4, 3}), ((2, 1, 1), {10, 8, 7, 5})]
)
async def test_the_worked_example_in_a_storage(
    tmp_path: Path, kind: str, policy: tuple[int, int, int], expected: set[int]
) -> None:
    root = tmp_path / "storage"
    place = f"host_path: {root}" if kind == "shared_fs" else f"container_path: {root}"
    async with cluster(tmp_path, checkpoint_roots=[root]) as one:
        root.mkdir()
        await worked_example(one, f"type: {kind}, {place}, {OWN % policy}", root)
        await becomes(one, root, expected)
        trials = (await one.get("/api/v1/experiments/1/trials"))["trials"]
        assert [each["checkpointCount"] for each in sorted(trials, key=lambda each: each["id"])] == [
            len([n for n in expected if n <= 5]),
            len([n for n in expected if n > 5]),
        ]


async def test_without_numbers_the_best_and_the_newest_of_each_trial_are_kept(one: Cluster) -> None:
    await worked_example(one, "", own_root(one))
    await becomes(one, own_root(one), {10, 7, 5})
    (event,) = (await one.get("/detent/events", kind="checkpoints_deleted"))["events"]
    assert "7 checkpoints" in event["text"]


async def test_a_master_that_ends_midway_goes_on_at_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data" / "checkpoints"

    async def cut_off(_database: object, _clock: object, roots: Any, doomed: Any) -> None:
        for each in doomed[:3]:
            removal.remove(each.storage, each.uuid, roots)
        raise RuntimeError("a test's: nothing is recorded")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_removal, "remove_files", cut_off)
        async with cluster(tmp_path) as one:
            await worked_example(one, OWN % (0, 1, 1), root)
            await eventually(lambda: len(there(root)) == 7)
    async with cluster(tmp_path) as one:
        await becomes(one, root, {10, 7, 5})


async def test_a_master_that_ends_while_it_chooses_goes_on_at_its_next_start(
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
        async with cluster(tmp_path) as one:
            await worked_example(one, OWN % (0, 1, 1), root)
            await eventually(lambda: len(marked) > 3)
    async with cluster(tmp_path) as one:
        await becomes(one, root, {10, 7, 5})
        await named(one, 7)


async def test_a_master_that_ends_once_all_is_chosen_still_names_what_it_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data" / "checkpoints"
    with monkeypatch.context() as patched:
        reached: list[str] = []

        async def ends(*_arguments: Any) -> None:
            reached.append("")
            raise RuntimeError("a test's")

        patched.setattr(retention.retention_repository, "settle", ends)
        async with cluster(tmp_path) as one:
            await worked_example(one, OWN % (0, 1, 1), root)
            await eventually(lambda: bool(reached))
    async with cluster(tmp_path) as one:
        await becomes(one, root, {10, 7, 5})
        await named(one, 7)


async def test_a_smaller_policy_is_previewed_and_applied(one: Cluster) -> None:
    await worked_example(one, OWN % (2, 1, 1), own_root(one))
    await becomes(one, own_root(one), {10, 8, 7, 5})
    asked = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 1}
    found = await one.get("/experiments/1/preview_gc", **asked)
    assert found["metric_name"] == "loss"
    assert [(each["TrialID"], each["StepsCompleted"], each["State"]) for each in found["checkpoints"]] == [
        (2, 2, "COMPLETED"),
        (2, 3, "COMPLETED"),
    ]
    assert found["checkpoints"][0]["ValidationMetrics"] == {"loss": 0.2}
    assert there(own_root(one)) == {10, 8, 7, 5}
    changes = {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 1}}
    assert (await one.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    await becomes(one, own_root(one), {10, 5})
    assert (await one.get("/experiments/1/preview_gc"))["checkpoints"] == []


async def test_a_policy_that_changes_while_it_is_applied_is_applied_again(
    one: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = one.master.settings.data / "checkpoints"
    candidates, asked = retention_repository.candidates, []

    async def and_somebody_changes_it(session: Any, experiment_id: int) -> Any:
        found = await candidates(session, experiment_id)
        if not asked:
            asked.append(True)
            smaller = {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}
            answer = await one.client.patch("/api/v1/experiments/1", json={"checkpointStorage": smaller})
            assert answer.status_code == 200, answer.text
        return found

    monkeypatch.setattr(retention_repository, "candidates", and_somebody_changes_it)
    await worked_example(one, OWN % (1, 1, 1), root)
    await ended(one)
    await eventually(lambda: there(root) == set())


async def test_a_checkpoint_that_another_trial_was_started_from_is_kept(one: Cluster) -> None:
    await worked_example(one, OWN % (0, 3, 3), own_root(one))
    await becomes(one, own_root(one), {10, 9, 8, 7, 5, 4, 3})
    config = f"""
name: next
entrypoint: python3 run.py
searcher: {{name: single, metric: loss, source_checkpoint_uuid: {checkpoint_uuid(4)}}}
hyperparameters: {{}}
"""
    await one.create(config, activate=False)
    changes = {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}}
    assert (await one.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    await becomes(one, own_root(one), {4})


async def removal_task(one: Cluster, root: Path) -> tuple[FakeAgent, DesiredContainer, dict[str, Any]]:
    """The worked example in a storage out of the master's reach, up to its task: the agent, its wish, what it is told."""
    root.mkdir()
    await worked_example(one, f"type: directory, container_path: {root}, {OWN % (0, 0, 2)}", root)
    await ended(one)
    agent = FakeAgent(one, "one")
    wish = (await agent.wished())[0]
    assert wish.spec is not None
    assert (wish.spec.owner, wish.spec.slots) == ("admin", [])
    assert wish.spec.entrypoint == ["python3", "-m", "determined.exec.gc_checkpoints"]
    await agent.run(wish)
    return agent, wish, dict(json.loads(wish.spec.environment["DETENT_CHECKPOINTS_TO_REMOVE"]))


async def test_a_storage_out_of_reach_is_cleaned_up_by_a_task_of_the_owner(one: Cluster, tmp_path: Path) -> None:
    root = tmp_path / "elsewhere"
    agent, wish, order = await removal_task(one, root)
    assert order["storage"] == {"type": "directory", "container_path": str(root)}
    assert {int(uuid[-12:], 16) for uuid in order["uuids"]} == {1, 2, 3, 6, 7, 8}
    assert gc_checkpoints.remove(order["storage"], order["uuids"], {}) == {}
    pending = (await one.get(f"/api/v1/checkpoints/{order['uuids'][0]}"))["checkpoint"]
    assert (pending["state"], pending["displayState"]) == ("STATE_DELETED", "STATE_DELETING")
    assert wish.spec is not None
    assert pending["removalTaskId"] == wish.spec.task_id
    stranger = {"removed": [], "failed": {checkpoint_uuid(4): "not mine to say"}}
    gone = checkpoint_uuid(99)  # as of an experiment that was deleted meanwhile
    mine = {"removed": [gone, *order["uuids"][1:]], "failed": {order["uuids"][0]: "it is held"}}
    for body, code in ((stranger, 403), (mine, 200), (mine, 200)):
        answer = await one.post("/detent/checkpoints/removed", body, **one.as_task(wish.allocation_id))
        assert answer.status_code == code, answer.text
    await agent.exit(wish)
    await becomes(one, root, {4, 5, 9, 10})
    shown = (await one.get(f"/api/v1/checkpoints/{order['uuids'][0]}"))["checkpoint"]
    assert (shown["state"], shown["deleteError"]) == ("STATE_PARTIALLY_DELETED", "it is held")
    assert shown["displayState"] == "STATE_DELETE_FAILED"


async def test_a_task_that_is_killed_leaves_checkpoints_that_say_so(one: Cluster, tmp_path: Path) -> None:
    agent, wish, order = await removal_task(one, tmp_path / "elsewhere")
    assert wish.spec is not None
    async with one.master.database.write() as session:
        await one.master.tasks.kill(session, await tasks.get(session, wish.spec.task_id), "admin")
    await agent.exit(wish, code=137)

    async def told() -> str:
        shown = (await one.get(f"/api/v1/checkpoints/{order['uuids'][0]}"))["checkpoint"]
        return str(shown.get("deleteError") or "")

    assert (await eventually(told)).startswith("the task that removes its files ended before: it was killed")
    # Again, by the user: by a task again, and of this checkpoint only.
    answer = await one.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": order["uuids"][:1]})
    assert answer.status_code == 200, answer.text

    async def next_wish() -> DesiredContainer | None:
        return next((each for each in await agent.wish() if each.container_id != wish.container_id), None)

    again = await eventually(next_wish)
    assert again.spec is not None
    assert json.loads(again.spec.environment["DETENT_CHECKPOINTS_TO_REMOVE"])["uuids"] == order["uuids"][:1]


def test_a_machine_without_the_folder_removes_nothing(tmp_path: Path) -> None:
    storage = {"type": "directory", "container_path": str(tmp_path / "missing")}
    failed = gc_checkpoints.remove(storage, [checkpoint_uuid(1)], {})
    assert "missing is not on this machine" in failed[checkpoint_uuid(1)]


async def test_files_that_cannot_be_removed_are_named_and_tried_again(one: Cluster) -> None:
    await one.join()
    obstacle = own_root(one) / f"{checkpoint_uuid(1)}.deleted"
    own_root(one).mkdir(parents=True, exist_ok=True)
    obstacle.write_text("in the way")
    await worked_example(one, OWN % (0, 1, 1), own_root(one))

    async def shown() -> list[dict[str, Any]]:
        found = await one.get("/detent/experiments/1/checkpoints", state=["STATE_DELETE_FAILED"])
        return list(found["checkpoints"])

    (failed,) = await eventually(shown)
    assert failed["deleteError"] == "its files could not be removed (Not a directory)"
    official = (await one.get(f"/api/v1/checkpoints/{checkpoint_uuid(1)}"))["checkpoint"]
    assert (official["state"], official["deleteError"]) == ("STATE_PARTIALLY_DELETED", failed["deleteError"])
    obstacle.unlink()
    answer = await one.client.request("DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(1)]})
    assert answer.status_code == 200, answer.text
    await becomes(one, own_root(one), {10, 7, 5})
    gone = (await one.get(f"/api/v1/checkpoints/{checkpoint_uuid(1)}"))["checkpoint"]
    assert (gone["state"], gone["deleteError"], gone["resources"]) == ("STATE_DELETED", None, {"weights": "3"})


async def test_files_that_are_gone_already_are_no_error(one: Cluster) -> None:
    await worked_example(one, OWN % (0, 10, 10), own_root(one))
    await becomes(one, own_root(one), set(range(1, 11)))
    for number in (1, 2):
        folder = own_root(one) / checkpoint_uuid(number)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    changes = {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 1, "saveTrialLatest": 1}}
    assert (await one.client.patch("/api/v1/experiments/1", json=changes)).status_code == 200
    await becomes(one, own_root(one), {10, 7, 5})
