"""Checkpoints of folders with pipes, sockets, devices and links: these are left out with a warning."""

import json
import logging
import os
import socket
from pathlib import Path

import pytest

from determined import core

LEFT_OUT = {
    "pipe": "a pipe",
    "socket": "a socket",
    "zero": "a device",
    "best": "a broken link",
    "latest": "a link to a folder",
}


@pytest.fixture
def context(tmp_path, monkeypatch):
    """Yields a context off the cluster with checkpoints in a folder. Its working folder is short for the socket's
    path."""
    config = {"checkpoint_storage": {"type": "directory", "container_path": f"{tmp_path}/store"}}
    monkeypatch.setenv("DET_EXPERIMENT_CONFIG", json.dumps(config))
    monkeypatch.setenv("DET_LOCAL_RUN", "1")
    with core.init() as core_context:
        yield core_context


def fill(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "weights").write_text("w")
    os.mkfifo(folder / "pipe")
    here = os.getcwd()
    os.chdir(folder)  # a socket's path has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    os.chdir(here)
    os.symlink("/dev/zero", folder / "zero")
    os.symlink("gone", folder / "best")
    os.symlink("sub", folder / "latest")


def restored(context, uuid: str) -> dict[str, str]:
    with context.checkpoint.restore_path(uuid, selector=lambda name: name != "metadata.json") as path:
        return {
            str(file.relative_to(path)): file.read_text()
            for file in sorted(path.rglob("*"))
            if file.is_file() and file.name != ".hashes.json"
        }


def warnings(caplog) -> list[str]:
    start = "left out of the checkpoint: "
    messages = [record.getMessage() for record in caplog.records]
    return [message.removeprefix(start) for message in messages if message.startswith(start)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("way", ["store_path", "upload"])
def test_special_files_are_left_out_with_a_warning(context, tmp_path, caplog, way, shard):
    caplog.set_level(logging.WARNING)
    if way == "store_path":
        with context.checkpoint.store_path({"steps_completed": 1}, shard=shard) as (path, uuid):
            fill(path)
    else:
        source = tmp_path / "source"
        source.mkdir()
        fill(source)
        uuid = context.checkpoint.upload(source, {"steps_completed": 1}, shard=shard)
        assert (source / "pipe").exists(), "the user's own folder stays as it is"
    assert restored(context, uuid) == {"sub/weights": "w"}
    assert warnings(caplog) == sorted(f"{name} is {kind}" for name, kind in LEFT_OUT.items())
