"""Files of outputs: what is kept, what is left out and named, bounds, and how they come back."""

import json
import os
import socket
import stat
from pathlib import Path

import pytest
from tests.support.object_stores import s3_store

from determined.errors import StorageError
from determined.storage import from_config, output_files
from determined.storage.base import METADATA_FILE, Storage
from determined.storage.directory import DirectoryStorage
from determined.storage.output_files import TooManyFiles, complete, find, restore, store

U1 = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "runs" / "one").mkdir(parents=True)
    (folder / "runs" / "one" / "a.txt").write_text("a")
    (folder / "runs" / "tool.sh").write_text("#!/bin/sh")
    (folder / "runs" / "tool.sh").chmod(0o755)
    return folder


@pytest.fixture(params=["directory", "shared_fs", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path):
    if request.param == "s3":
        with s3_store() as created:
            yield from_config(created.config, {})
    elif request.param == "shared_fs":
        yield from_config({"type": "shared_fs", "host_path": "/x"}, {"DET_SHARED_FS": str(tmp_path / "shared")})
    else:
        yield DirectoryStorage(tmp_path / "checkpoints")


@pytest.mark.budget(15, "starts an object store")
def test_outputs_come_back_with_links_and_executable_files(storage: Storage, work: Path, tmp_path: Path) -> None:
    (work / "runs" / "latest").symlink_to("one")
    (work / "runs" / "one" / "tool").symlink_to("../tool.sh")
    (work / "runs" / "absolute").symlink_to(work / "runs" / "one" / "a.txt")
    found = find(work, ["runs"])
    store(storage, work, found, U1, {"steps_completed": 0})
    there = tmp_path / "next"
    (there / "runs").mkdir(parents=True)
    (there / "runs" / "of-the-code").write_text("stays")
    restore(storage, U1, there)
    assert (there / "runs" / "latest" / "a.txt").read_text() == "a"
    assert os.readlink(there / "runs" / "latest") == "one"
    assert os.readlink(there / "runs" / "absolute") == "one/a.txt"
    assert os.access(there / "runs" / "one" / "tool", os.X_OK)
    assert not os.access(there / "runs" / "one" / "a.txt", os.X_OK)
    assert (there / "runs" / "of-the-code").exists()
    assert not (there / METADATA_FILE).exists()
    assert sorted(storage.resources(U1)) == [METADATA_FILE, *("runs/", "runs/one/", "runs/one/a.txt", "runs/tool.sh")]


def test_links_pipes_and_sockets_are_left_out_by_name(work: Path, tmp_path: Path, monkeypatch) -> None:
    runs = work / "runs"
    (tmp_path / "secret").write_text("secret")
    (runs / "out").symlink_to(tmp_path / "secret")
    (runs / "up").symlink_to("../..")
    (runs / "chain").symlink_to("out")
    (runs / "data").symlink_to("../../work")
    os.mkfifo(runs / "pipe")
    (runs / ".hashes.json").write_text("{}")
    monkeypatch.chdir(runs)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        found = find(work, ["runs"])
    assert sorted(found.files) == ["runs/one/a.txt", "runs/tool.sh"]
    assert found.links == {}
    assert set(found.left_out) == {
        f"runs/{n}" for n in ("out", "up", "chain", "data", "pipe", "socket", ".hashes.json")
    }
    assert found.left_out["runs/pipe"] == "a pipe"
    assert found.left_out["runs/out"] == f"a link to {tmp_path / 'secret'}, which is not in the outputs"


def test_a_folder_of_outputs_that_is_a_link_is_left_out_by_name(work: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_text("secret")
    (work / "data").symlink_to(tmp_path / "data")
    found = find(work, ["data", "data/deep", "nothing", "runs/tool.sh"])
    assert list(found.files) == ["runs/tool.sh"]
    assert list(found.left_out) == ["data", "data/deep"]
    assert str(tmp_path / "data") in found.left_out["data"]


def test_a_name_that_is_not_utf_8_is_left_out_and_printable(work: Path) -> None:
    (Path(os.fsdecode(os.fsencode(work / "runs") + b"/\xff"))).write_text("x")
    found = find(work, ["runs"])
    assert found.left_out == {"runs/?": "a name that is not UTF-8"}


def test_more_entries_than_the_bound_are_refused(work: Path) -> None:
    assert len(find(work, ["runs"], most=4).files) == 2
    with pytest.raises(TooManyFiles, match="more than 3 files and folders in runs"):
        find(work, ["runs"], most=3)


def test_the_folders_above_an_output_count_and_a_checkpoint_has_all_names_and_its_metadata(
    work: Path, tmp_path: Path
) -> None:
    storage = DirectoryStorage(tmp_path / "checkpoints")
    found = find(work, ["runs/one"], most=3)
    store(storage, work, found, U1, {})
    assert sorted(storage.resources(U1)) == [METADATA_FILE, "runs/", "runs/one/", "runs/one/a.txt"]
    with pytest.raises(TooManyFiles, match="more than 2 files"):
        find(work, ["runs/one"], most=2)


def test_outputs_larger_than_the_free_space_are_refused_and_leave_nothing(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = DirectoryStorage(tmp_path / "checkpoints")
    storage.probe()
    os.truncate(work / "runs" / "one" / "a.txt", 1 << 43)
    with pytest.raises(StorageError, match=r"8,796,093,022,217 bytes, and the checkpoint storage has [\d,]+ bytes"):
        store(storage, work, find(work, ["runs"]), U1, {})
    os.truncate(work / "runs" / "one" / "a.txt", 10)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(storage.root))

    monkeypatch.setattr(output_files, "copy", full)
    with pytest.raises(StorageError, match="is full"):
        store(storage, work, find(work, ["runs"]), U1, {})
    assert list(storage.root.iterdir()) == []


def test_restoring_through_a_link_is_refused(work: Path, tmp_path: Path) -> None:
    storage = DirectoryStorage(tmp_path / "checkpoints")
    store(storage, work, find(work, ["runs"]), U1, {})
    there = tmp_path / "next"
    there.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (there / "runs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="remove the link"):
        restore(storage, U1, there)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("runs/a", "/etc/passwd"),
        ("runs/a", "../../x"),
        ("runs/a", "one/../../../x"),
        ("../a", "runs"),
        ("/tmp/a", "runs"),
        ("runs/../../a", "x"),
        ("runs/a", ""),
        ("runs/a", 5),
        ("runs/a", None),
        ("runs/a", ["one"]),
        ("runs/a", "o\0ne"),
        ("runs/\ud800", "one"),
    ],
)
def test_metadata_of_somebody_else_makes_no_link_that_leads_out(tmp_path: Path, name: str, target: object) -> None:
    there = tmp_path / "there"
    (there / "runs" / "one").mkdir(parents=True)
    complete(there, json.dumps({"links": {name: target}, "executables": ["../x", "/bin/sh", None, "\0"]}).encode())
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]


def test_unreadable_files_are_left_out_by_name(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "a.txt" and real(path, mode))
    assert find(work, ["runs"]).left_out == {"runs/one/a.txt": "unreadable (Permission denied)"}


def test_special_bits_of_files_do_not_come_back(work: Path, tmp_path: Path) -> None:
    (work / "runs" / "tool.sh").chmod(0o4755)
    storage = DirectoryStorage(tmp_path / "checkpoints")
    store(storage, work, find(work, ["runs"]), U1, {})
    (tmp_path / "next").mkdir()
    restore(storage, U1, tmp_path / "next")
    assert not (tmp_path / "next" / "runs" / "tool.sh").stat().st_mode & stat.S_ISUID
