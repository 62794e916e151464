"""Sharded checkpoints of four real workers on two machines: one whole checkpoint, or none and an error at every
worker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import rank_processes
from tests.support.free_ports import free_port
from tests.support.object_stores import s3_store

from determined.core._shard_merge import merge_metadata

# One test worker starts the four processes once for each store.
pytestmark = pytest.mark.xdist_group("shards")

SCRIPT = str(Path(rank_processes.__file__).with_name("shard_scenarios.py"))


@pytest.fixture(scope="module", params=["a folder", pytest.param("a bucket", marks=pytest.mark.long)])
def config(request, tmp_path_factory):
    if request.param == "a folder":
        yield {"type": "directory", "container_path": str(tmp_path_factory.mktemp("store"))}
        return
    with s3_store() as store:
        yield store.config


@pytest.fixture(scope="module")
def scenarios(config, tmp_path_factory):
    """Returns scenario → the outcome of each rank. Ranks 0 and 1 run on one machine, 2 and 3 on the other."""
    folder = tmp_path_factory.mktemp("shards")
    port = str(free_port())
    children = []
    for rank in range(4):
        run_dir = folder / f"container-{rank // 2}"
        run_dir.mkdir(exist_ok=True)
        environ = {
            **rank_processes.environment(),
            "RANK": str(rank),
            "WORLD_SIZE": "4",
            "LOCAL_RANK": str(rank % 2),
            "LOCAL_WORLD_SIZE": "2",
            "DET_RUN_DIR": str(run_dir),
            "DET_CHIEF_IP": "127.0.0.1",
            "DET_ALLOCATION_KEY": "ab" * 32,
            "INTER_TRAIN_PROCESS_COMM_PORT_1": port,
        }
        (folder / "scratch").mkdir(exist_ok=True)
        words = [sys.executable, SCRIPT, json.dumps(config), str(folder / "scratch")]
        child = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        children.append(child)
    ranks = []
    for child in children:
        text = rank_processes.finish(child)
        ranks.append(json.loads(next(line[3:] for line in text.splitlines() if line.startswith("OUT"))))
    store_folder = config.get("container_path")
    assert not store_folder or not [name for name in os.listdir(store_folder) if "partial" in name]
    return {name: [rank[name] for rank in ranks] for name in ranks[0]}


def errors_of(ranks):
    """Returns the errors of all ranks. Requires that none left a file in the storage."""
    assert [rank["left"] for rank in ranks] == [0] * 4
    return [rank["error"] for rank in ranks]


def results_of(ranks):
    """Returns the results of all ranks. Requires that none failed."""
    assert not [rank["error"] for rank in ranks if "error" in rank]
    return [rank["result"] for rank in ranks]


def test_a_checkpoint_joins_the_files_of_all_ranks_and_a_file_that_is_equal_everywhere(scenarios):
    ranks = results_of(scenarios["a_file_each"])
    files = {f"rank-{rank}.bin": f"rank-{rank}" for rank in range(4)}
    metadata = {"steps_completed": 1, "by": {f"rank-{rank}": rank for rank in range(4)}}
    assert [item[:2] for item in ranks] == [[{**files, "sub/same": "same"}, metadata]] * 4
    assert [item[2] for item in ranks] == [1, 0, 0, 0]  # only the chief reports


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        ("different_content", "for the same file name: shared (ranks 0, 1, 2 and 3)"),
        ("different_size", "for the same file name: shared (ranks 0, 1, 2 and 3)"),
        ("file_and_folder", "for the same file name: a (ranks 0, 1, 2 and 3)"),
    ],
)
def test_a_file_name_with_two_contents_fails_for_every_rank(scenarios, scenario, text):
    for error in errors_of(scenarios[scenario]):
        assert error.startswith("RuntimeError: the checkpoint was not stored")
        assert text in error


def test_every_rank_names_the_ranks_that_failed(scenarios):
    errors = errors_of(scenarios["one_fails"])
    assert errors[1] == errors[3] == "ZeroDivisionError: by rank"
    expected = "RuntimeError: the checkpoint was not stored: ranks 1 and 3 failed: ZeroDivisionError: by rank"
    assert errors[0] == errors[2] == expected


def test_conflicting_or_invalid_metadata_fails_for_every_rank(scenarios):
    assert (
        errors_of(scenarios["metadata_conflict"])
        == ["ValueError: workers have different metadata for note.seed: 1 (rank 0) and 2 (rank 3)"] * 4
    )
    errors = errors_of(scenarios["metadata_not_json"])
    assert errors[1].startswith("TypeError")
    assert all("rank 1 failed: TypeError" in errors[rank] for rank in (0, 2, 3))
    assert all("steps_completed" in error for error in errors_of(scenarios["no_steps"]))


def test_each_rank_uploads_its_files_or_all_fail(scenarios):
    assert results_of(scenarios["uploaded"]) == [{f"rank-{rank}.bin": f"rank-{rank}" for rank in range(3)}] * 4
    assert results_of(scenarios["uploaded_from_one_folder"]) == [{"zero": "0", "one": "1"}] * 4
    assert all("weights (ranks 0 and 2)" in error for error in errors_of(scenarios["same_numbers_on_two_machines"]))
    errors = errors_of(scenarios["upload_from_nowhere"])
    assert errors[2].startswith("FileNotFoundError")
    assert all("rank 2 failed: FileNotFoundError" in errors[rank] for rank in (0, 1, 3))
    assert all("no worker gave a folder" in error for error in errors_of(scenarios["upload_nothing"]))


def test_a_failure_of_storage_or_master_at_the_chief_fails_for_every_rank(scenarios, config):
    errors = errors_of(scenarios["storage_fails"])
    problem = (
        "cannot write in checkpoint storage"
        if config["type"] == "directory"
        else "cannot upload a to checkpoint storage"
    )
    assert all(error.startswith("StorageError") and problem in error for error in errors)
    assert all("rank 0 failed" in errors[rank] for rank in (1, 2, 3))
    errors = [rank["error"] for rank in scenarios["report_fails"]]
    assert errors[0] == "ConnectionError: the master said no"
    assert errors[1] == (
        "RuntimeError: the checkpoint was stored but not reported: rank 0 failed: ConnectionError: the master said no"
    )


def test_each_download_mode_fetches_the_files_of_its_machine_or_rank(scenarios):
    for rank, (shared, alone) in enumerate(results_of(scenarios["downloads"])):
        machine = rank // 2
        # the files of all workers of this machine and none of the other machine
        assert shared == [f"rank-{2 * machine}.bin", f"rank-{2 * machine + 1}.bin"]
        assert alone == [f"rank-{rank}.bin"]


def test_each_restore_mode_gives_the_files_of_its_machine_or_rank(scenarios, config):
    ranks = results_of(scenarios["restores"])
    for rank, (shared, restored) in enumerate(ranks):
        machine = rank // 2
        assert restored[0] == [config["type"] == "directory", f"rank-{rank}"]
        assert restored[1] == [f"rank-{2 * machine}.bin", f"rank-{2 * machine + 1}.bin"]
        assert restored[2] is False
        assert shared == ranks[2 * machine][0]
    assert ranks[1][1][3] == [["rank-1.bin"], "rank-1"]
    assert ranks[0][0] != ranks[2][0]


def test_a_restore_that_fails_for_one_worker_fails_for_all_of_its_machine(scenarios):
    assert all("0000 is not in" in rank["error"] for rank in scenarios["restore_of_nothing"])
    errors = [rank.get("error") for rank in scenarios["a_selector_fails"]]
    assert errors[:2] == [None, None]
    assert errors[3].startswith("KeyError")
    assert errors[2].startswith("RuntimeError: the checkpoint was not restored: rank 3 failed: KeyError")
    assert all("NoSharedDownload" in rank["error"] for rank in scenarios["folders_differ"])


def test_a_loss_that_is_no_number_is_the_same_on_all_workers():
    nan = float("nan")
    assert merge_metadata([{"loss": nan, "all": [nan, 1]}, {"loss": nan, "all": [float("nan"), 1]}])["all"][1] == 1


def test_merge_metadata_joins_nested_values_and_refuses_conflicts():
    parts = [{"a": {"b": 1}, "n": 1}, {"a": {"c": [2]}, "n": 1}, {}]
    assert merge_metadata(parts) == {"a": {"b": 1, "c": [2]}, "n": 1}
    assert parts[0] == {"a": {"b": 1}, "n": 1}
    with pytest.raises(ValueError, match=r"for a: {'b': 1} \(rank 0\) and 5 \(rank 1\)"):
        merge_metadata([{"a": {"b": 1}}, {"a": 5}])


def test_the_chief_lists_the_files_after_every_worker_has_moved_its_own(scenarios, config):
    remaining = [rank["result"] for rank in scenarios["chief_looks_when_all_are_done"]]
    assert remaining == [[], [], [], []]
