"""Sharded checkpoints of four real workers on two machines: one whole, or nothing and an error at every worker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import rank_processes
from tests.support.object_stores import s3_store

from determined.core._shard_merge import merge_metadata

# One worker starts the four processes, once for each store.
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
def every(config, tmp_path_factory):
    """Scenario → what each of the four ranks got; rank 0 and 1 on one machine, 2 and 3 on the other."""
    folder = tmp_path_factory.mktemp("shards")
    port = str(rank_processes.free_port())
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
    place = config.get("container_path")
    assert not place or not [name for name in os.listdir(place) if "partial" in name]
    return {name: [rank[name] for rank in ranks] for name in ranks[0]}


def errors(created):
    """The errors of all ranks; nothing was left in the storage."""
    assert [rank["left"] for rank in created] == [0] * 4
    return [rank["error"] for rank in created]


def results(created):
    assert not [rank["error"] for rank in created if "error" in rank]
    return [rank["result"] for rank in created]


def test_each_brings_a_file_and_one_is_the_same_everywhere(every):
    created = results(every["a_file_each"])
    files = {f"rank-{rank}.bin": f"rank-{rank}" for rank in range(4)}
    metadata = {"steps_completed": 1, "by": {f"rank-{rank}": rank for rank in range(4)}}
    assert [item[:2] for item in created] == [[{**files, "sub/same": "same"}, metadata]] * 4
    assert [item[2] for item in created] == [1, 0, 0, 0]  # the chief reports, once


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        ("different_content", "for the same file name: shared (ranks 0, 1, 2 and 3)"),
        ("different_size", "for the same file name: shared (ranks 0, 1, 2 and 3)"),
        ("file_and_folder", "for the same file name: a (ranks 0, 1, 2 and 3)"),
    ],
)
def test_one_file_name_with_two_contents_is_an_error(every, scenario, text):
    for error in errors(every[scenario]):
        assert error.startswith("RuntimeError: the checkpoint was not stored")
        assert text in error


def test_whoever_fails_is_named_everywhere(every):
    created = errors(every["one_fails"])
    assert created[1] == created[3] == "ZeroDivisionError: by rank"
    expected = "RuntimeError: the checkpoint was not stored: ranks 1 and 3 failed: ZeroDivisionError: by rank"
    assert created[0] == created[2] == expected


def test_conflicting_or_invalid_metadata_fails_for_every_rank(every):
    assert (
        errors(every["metadata_conflict"])
        == ["ValueError: workers have different metadata for note.seed: 1 (rank 0) and 2 (rank 3)"] * 4
    )
    odd = errors(every["metadata_not_json"])
    assert odd[1].startswith("TypeError")
    assert all("rank 1 failed: TypeError" in odd[rank] for rank in (0, 2, 3))
    assert all("steps_completed" in error for error in errors(every["no_steps"]))


def test_each_rank_uploads_its_files_or_all_fail(every):
    assert results(every["uploaded"]) == [{f"rank-{rank}.bin": f"rank-{rank}" for rank in range(3)}] * 4
    assert results(every["uploaded_from_one_folder"]) == [{"zero": "0", "one": "1"}] * 4
    assert all("weights (ranks 0 and 2)" in error for error in errors(every["same_numbers_on_two_machines"]))
    created = errors(every["upload_from_nowhere"])
    assert created[2].startswith("FileNotFoundError")
    assert all("rank 2 failed: FileNotFoundError" in created[rank] for rank in (0, 1, 3))
    assert all("no worker gave a folder" in error for error in errors(every["upload_nothing"]))


def test_storage_and_master_fail_at_the_chief_and_everywhere(every, config):
    created = errors(every["storage_fails"])
    said = (
        "cannot write in checkpoint storage"
        if config["type"] == "directory"
        else "cannot upload a to checkpoint storage"
    )
    assert all(error.startswith("StorageError") and said in error for error in created)
    assert all("rank 0 failed" in created[rank] for rank in (1, 2, 3))
    created = [rank["error"] for rank in every["report_fails"]]
    assert created[0] == "ConnectionError: the master said no"
    assert created[1] == (
        "RuntimeError: the checkpoint was stored but not reported: rank 0 failed: ConnectionError: the master said no"
    )


def test_each_download_mode_fetches_the_files_of_its_machine_or_rank(every):
    for rank, (shared, alone) in enumerate(results(every["downloads"])):
        machine = rank // 2
        # what any worker of the machine wants, and nothing of the other machine's
        assert shared == [f"rank-{2 * machine}.bin", f"rank-{2 * machine + 1}.bin"]
        assert alone == [f"rank-{rank}.bin"]


def test_each_restore_mode_gives_the_files_of_its_machine_or_rank(every, config):
    created = results(every["restores"])
    for rank, (shared, seen) in enumerate(created):
        machine = rank // 2
        assert seen[0] == [config["type"] == "directory", f"rank-{rank}"]
        assert seen[1] == [f"rank-{2 * machine}.bin", f"rank-{2 * machine + 1}.bin"]
        assert seen[2] is False
        assert shared == created[2 * machine][0]
    assert created[1][1][3] == [["rank-1.bin"], "rank-1"]
    assert created[0][0] != created[2][0]


def test_what_fails_for_one_worker_of_a_machine_fails_for_all_of_it(every):
    assert all("0000 is not in" in rank["error"] for rank in every["restore_of_nothing"])
    created = [rank.get("error") for rank in every["a_selector_fails"]]
    assert created[:2] == [None, None]
    assert created[3].startswith("KeyError")
    assert created[2].startswith("RuntimeError: the checkpoint was not restored: rank 3 failed: KeyError")
    assert all("NoSharedDownload" in rank["error"] for rank in every["folders_differ"])


def test_merge_of_equal_and_nested_metadata():
    parts = [{"a": {"b": 1}, "n": 1}, {"a": {"c": [2]}, "n": 1}, {}]
    assert merge_metadata(parts) == {"a": {"b": 1, "c": [2]}, "n": 1}
    assert parts[0] == {"a": {"b": 1}, "n": 1}
    with pytest.raises(ValueError, match=r"for a: {'b': 1} \(rank 0\) and 5 \(rank 1\)"):
        merge_metadata([{"a": {"b": 1}}, {"a": 5}])


def test_the_chief_looks_for_the_files_when_every_worker_has_moved_its_own(every, config):
    left = [rank["result"] for rank in every["chief_looks_when_all_are_done"]]
    assert left == [[], [], [], []]
