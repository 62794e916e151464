"""Removal of stale run folders by age and total size; folders in use, links and foreign names stay."""

import os
import time
import uuid
from pathlib import Path

from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined_agent.run_folders.agent_state import AgentState
from determined_agent.run_folders.run_folder_cleanup import RunFolderCleanup
from determined_agent.settings import Settings

DAY = 86400.0


def make_folder(runs: Path, age: float, size: int = 100, prefix: str = "") -> Path:
    folder = runs / f"{prefix}{uuid.uuid4()}"
    (folder / "output").mkdir(parents=True)
    (folder / "output" / "0.seg").write_bytes(os.urandom(size))
    (folder / "record.json").write_text("no record")
    os.utime(folder, (time.time() - age,) * 2)
    return folder


def names(runs: Path) -> set[str]:
    return {path.name for path in runs.iterdir()}


async def test_old_run_folders_are_removed_and_newer_ones_stay(tmp_path: Path) -> None:
    state = AgentState(tmp_path / "data")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("mine")
    old, gone = make_folder(state.runs, 2 * DAY), make_folder(state.runs, 2 * DAY, prefix=".gone-")
    (old / "link").symlink_to(outside)
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    young, known = make_folder(state.runs, DAY / 2), make_folder(state.runs, 2 * DAY)
    foreign = state.runs / "notes"
    foreign.mkdir()
    os.utime(foreign, (0, 0))
    link = state.runs / str(uuid.uuid4())
    link.symlink_to(outside)
    settings = Settings(data=tmp_path / "data")
    await RunFolderCleanup(state, lambda: {known.name}, settings).tick()
    assert names(state.runs) == {young.name, known.name, "notes", link.name}
    assert (outside / "kept").read_text() == "mine"
    assert not gone.exists()
    state.close()


async def test_beyond_the_total_size_the_oldest_run_folders_are_removed_first(tmp_path: Path) -> None:
    state = AgentState(tmp_path / "data")
    folders = [make_folder(state.runs, age, size=1 << 20) for age in (3000.0, 2000.0, 1000.0, 1.0)]
    settings = Settings(data=tmp_path / "data", stale_run_folder_bytes=(5 << 20) // 2)
    await RunFolderCleanup(state, set, settings).tick()
    assert [folder.exists() for folder in folders] == [False, False, True, True]
    settings = Settings(data=tmp_path / "data", stale_run_folder_bytes=0)
    await RunFolderCleanup(state, set, settings).tick()
    assert [folder.exists() for folder in folders] == [False, False, False, True], "the youngest may be in use"
    state.close()


async def test_the_run_folder_of_a_running_task_stays(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired("echo up; sleep 1000", container_id=str(uuid.uuid4()))
    data = tmp_path / "data"
    async with serving(master.app()) as url:
        async with agent_on(url, data):
            await master.set_desired(desired)
            await eventually(lambda: master.text_of(desired.container_id) == ["up"])
        state = AgentState(data)
        os.utime(state.runs / desired.container_id, (0, 0))
        await RunFolderCleanup(state, set, Settings(data=data)).tick()
        assert names(state.runs) == {desired.container_id}
        state.close()
        async with agent_on(url, data):
            await master.set_desired()
            await eventually(lambda: names(data / "runs") == set())
