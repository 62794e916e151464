"""Attacks on the host through host paths, devices and capabilities of containers, with a real engine.

All attacked paths belong to the test.
"""

import contextlib
import ctypes
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import agent_on, is_done, make_desired, outcome
from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("container-engine")

ADA = {"uid": 54001, "gid": 54101, "user": "ada", "group": "lab"}
DOCKER = {"container_runtime": "docker", "default_images": {"cpu": BASE_IMAGE}}
SECRET = "the password of the admin"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    need_engine()


@pytest.fixture
def master_folder(tmp_path: Path) -> Path:
    """Returns the data folder of a master, with secrets and checkpoints in it."""
    folder = tmp_path / "master"
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("secret", "agent-token", "password"):
        (folder / name).write_text(SECRET)
    folder.chmod(0o700)
    return folder


def storage(path: object) -> dict[str, Any]:
    return {"checkpoint_storage": {"type": "shared_fs", "host_path": str(path)}}


def bind(path: object) -> dict[str, Any]:
    return {"bind_mounts": [{"host_path": str(path), "container_path": "/determined_shared_fs"}]}


def make_master(master_folder: Path) -> FakeLinkMaster:
    master = FakeLinkMaster()
    master.data_folder, master.storage_folders = str(master_folder), [str(master_folder / "checkpoints")]
    return master


async def attack(tmp_path: Path, master_folder: Path, script: str, **spec: Any) -> tuple[str, list[str]]:
    """Returns the reason for which a task did not start, and the lines that it wrote."""
    ended, lines, _ = await outcome(tmp_path, script, master=make_master(master_folder), settings=DOCKER, **spec)
    assert not any(SECRET in line for line in lines), lines
    return (ended.message if ended.kind == "failed_to_start" else ""), lines


async def reasons(tmp_path: Path, master_folder: Path, script: str, attacks: list[dict[str, Any]]) -> list[str]:
    """Returns the reasons for which these tasks of one agent did not start."""
    # The image does not exist: a task that is not refused before the pull fails with another reason.
    containers = [make_desired(script, **attack, images={"cpu": "localhost:1/nothing:there"}) for attack in attacks]
    master = make_master(master_folder)
    async with serving(master.app()) as url, agent_on(url, tmp_path / "data", **DOCKER):
        await master.set_desired(*containers)
        await eventually(lambda: all(is_done(master, desired) for desired in containers))
    messages = []
    for desired in containers:
        report = master.report_of(desired.container_id)
        assert report is not None
        assert report.exit is not None
        assert report.exit.kind == "failed_to_start"
        assert master.text_of(desired.container_id) == []
        messages.append(report.exit.message)
    return messages


async def test_no_task_sees_the_folders_of_the_cluster_or_the_engines_socket(
    tmp_path: Path, master_folder: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(master_folder)
    paths = (master_folder, f"{master_folder}/checkpoints/..", link, tmp_path, "/var/run", tmp_path / "data")
    specs = [option(path) | {"run_as": user} for path in paths for option in (storage, bind) for user in (None, ADA)]
    script = "cat /determined_shared_fs/password /determined_shared_fs/master/password; ls /determined_shared_fs"
    for spec, reason in zip(specs, await reasons(tmp_path, master_folder, script, specs), strict=True):
        assert "host_path: " in reason, (spec, reason)
        assert "To allow it, an administrator adds to agent.yaml: allowed_host_paths: [" in reason, (spec, reason)


async def test_no_task_gets_a_capability_or_a_device_that_is_not_listed(tmp_path: Path, master_folder: Path) -> None:
    attacks: list[tuple[dict[str, Any], str]] = [
        ({"add_capabilities": ["SYS_ADMIN"]}, "allowed_capabilities: [SYS_ADMIN]"),
        ({"add_capabilities": ["cap_all"]}, "allowed_capabilities: [ALL]"),
        ({"devices": [{"host_path": "/dev/null", "container_path": "/dev/x"}]}, "allowed_devices: [/dev/null]"),
        ({"devices": [{"host_path": "/dev", "container_path": "/dev/x"}]}, "allowed_devices: [/dev]"),
    ]
    specs = [spec | {"run_as": user} for spec, _ in attacks for user in (None, ADA)]
    lines = [line for _, line in attacks for _ in (None, ADA)]
    for line, reason in zip(lines, await reasons(tmp_path, master_folder, "true", specs), strict=True):
        assert reason.endswith(f"To allow it, an administrator adds to agent.yaml: {line}")


async def test_a_task_that_runs_as_root_gets_the_clusters_storage_and_no_folder_beside_it(
    tmp_path: Path, master_folder: Path
) -> None:
    own = storage(master_folder / "checkpoints")
    reason, lines = await attack(tmp_path / "a", master_folder, "touch /determined_shared_fs/x && echo kept", **own)
    assert (reason, lines) == ("", ["kept"])
    assert (master_folder / "checkpoints" / "x").exists()
    (tmp_path / "beside").mkdir()
    reason, _ = await attack(tmp_path / "b", master_folder, "true", **storage(tmp_path / "beside"))
    assert f"the administrator of this agent does not allow {tmp_path}/beside" in reason


@pytest.fixture
def homes() -> Iterator[Path]:
    """Yields a folder with Ada's folder, and with a readable folder inside one that is closed to her."""
    folder = Path(tempfile.mkdtemp(prefix="detent-homes-"))
    folder.chmod(0o755)
    for name in ("ada", "ada/work", "closed", "closed/open"):
        (folder / name).mkdir()
    (folder / "closed" / "open" / "file").write_text(SECRET)
    (folder / "closed").chmod(0o700)
    (folder / "ada" / "work" / "file").write_text("mine")
    (folder / "ada" / "link").symlink_to(folder / "closed" / "open")
    for path in (folder / "ada", folder / "ada" / "work", folder / "ada" / "link"):
        os.chown(path, ADA["uid"], ADA["gid"], follow_symlinks=False)  # type: ignore[arg-type]
    yield folder
    shutil.rmtree(folder)


async def test_a_linked_user_mounts_their_own_folder_but_none_inside_a_closed_folder(
    tmp_path: Path, master_folder: Path, homes: Path
) -> None:
    script = "cat /determined_shared_fs/file; touch /determined_shared_fs/made"
    reason, lines = await attack(tmp_path / "a", master_folder, script, run_as=ADA, **bind(homes / "ada" / "work"))
    assert (reason, lines) == ("", ["mine"])
    assert (homes / "ada" / "work" / "made").stat().st_uid == ADA["uid"]
    for number, path in enumerate(("closed/open", "ada/link")):
        reason, _ = await attack(tmp_path / str(number), master_folder, script, run_as=ADA, **bind(homes / path))
        assert f"uid 54001 may not reach host_path {homes}/closed/open" in reason


@contextlib.contextmanager
def exchanged_after_the_check(data: Path, first: Path, second: Path) -> Iterator[None]:
    """Exchanges two paths after the agent has checked them, before its engine mounts them."""
    libc, done = ctypes.CDLL(None), threading.Event()

    def work() -> None:
        while not done.is_set():
            if any(data.glob("runs/*/shim.json")):
                libc.renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("way", [bind, storage])
async def test_a_link_that_replaces_a_checked_folder_is_not_mounted(
    tmp_path: Path, master_folder: Path, homes: Path, way: Any
) -> None:
    spec, script = way(homes / "ada" / "work"), "cat /determined_shared_fs/file"
    with exchanged_after_the_check(tmp_path / "data", homes / "ada" / "work", homes / "ada" / "link"):
        reason, lines = await attack(tmp_path, master_folder, script, run_as=ADA, **spec)
    assert (homes / "ada" / "work").is_symlink()
    assert lines == ["mine"] or "host_path: " in reason, (reason, lines)
