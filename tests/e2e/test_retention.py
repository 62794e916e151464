"""Checkpoints of an ended experiment are deleted by its policy, even if the master is killed meanwhile."""

import pytest
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]


@pytest.mark.long  # tests/integration/test_retention.py has the same moments
@pytest.mark.parametrize("kind", ["shared_fs", pytest.param("directory", marks=pytest.mark.long)])
def test_a_master_killed_at_the_end_of_an_experiment_keeps_what_the_policy_says(cluster, tmp_path, moments, kind):
    root = cluster.data / "checkpoints"
    place = {"host_path": str(root)} if kind == "shared_fs" else {"container_path": str(root)}
    policy = {"save_experiment_best": 2, "save_trial_best": 1, "save_trial_latest": 2}
    storage = {"type": kind, **place, **policy}
    experiment = create(
        cluster, MODELS["digits"], tmp_path, checkpoint_storage=storage, min_checkpoint_period={"batches": 4}
    )
    before = wait_until(lambda: len(listed(experiment)) >= 6 and listed(experiment), what="six checkpoints")
    wait_until(lambda: experiment.state == "COMPLETED", what="its end")
    cluster.kill_master()
    cluster.start_master()
    remaining = wait_until(lambda: is_settled(experiment, root) and listed(experiment), what="the policy is applied")
    steps = sorted(remaining.values())
    assert steps[-2:] == sorted({*before.values(), *steps})[-2:]  # the newest two
    assert 2 <= len(remaining) <= 4
    assert folders(root, experiment) == set(remaining)
    best = experiment.cluster.session.get(f"/api/v1/trials/{experiment.trial_id}")["trial"]["bestValidation"]
    assert int(best["totalBatches"]) in steps


def test_checkpoints_out_of_the_masters_reach_are_removed_by_a_task(cluster, tmp_path):
    root = tmp_path / "elsewhere"
    root.mkdir()
    storage = {"type": "directory", "container_path": str(root), "save_trial_best": 0, "save_trial_latest": 1}
    experiment = create(
        cluster, MODELS["digits"], tmp_path, checkpoint_storage=storage, min_checkpoint_period={"batches": 4}
    )
    experiment.ended()
    wait_until(lambda: is_settled(experiment, root), what="the policy is applied")
    (steps,) = listed(experiment).values()
    assert steps == MODELS["digits"].steps

    def live_tasks():
        return cluster.session.get("/api/v1/tasks")["allocationIdToSummary"].values()

    wait_until(lambda: not any("removes" in str(task["name"]) for task in live_tasks()), what="the task's end")
    cluster.session.delete(f"/api/v1/experiments/{experiment.id}")
    wait_until(lambda: not any(root.iterdir()), what="the files of the deleted experiment are gone")


def listed(experiment):
    """Returns the batches of completed checkpoints by id."""
    path = f"/api/v1/trials/{experiment.trial_id}/checkpoints"
    answer = experiment.cluster.session.get(path, {"states": ["STATE_COMPLETED"]})
    return {row["uuid"]: int(row["metadata"]["steps_completed"]) for row in answer["checkpoints"]}


def folders(root, experiment):
    """Returns the checkpoints of the experiment with existing folders, partly removed ones included."""
    path = f"/api/v1/trials/{experiment.trial_id}/checkpoints"
    uuids = {row["uuid"] for row in experiment.cluster.session.get(path)["checkpoints"]}
    return {folder.name.partition(".")[0] for folder in root.iterdir()} & uuids


def is_settled(experiment, root):
    events = experiment.cluster.session.get("/detent/events", {"kind": "checkpoints_deleted"})["events"]
    chosen = any(event["targetId"] == str(experiment.id) for event in events)
    return chosen and folders(root, experiment) == set(listed(experiment))
