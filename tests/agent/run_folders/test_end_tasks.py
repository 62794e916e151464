"""Ending tasks by their run folders alone; the next agent reports them as killed."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined_agent.drivers.process import open_shim
from determined_agent.run_folders.agent_state import AgentState
from determined_agent.run_folders.end_tasks import end_tasks, is_running
from determined_agent.task_process import processes


@pytest.mark.parametrize("is_hung", [False, True])
async def test_end_tasks_ends_a_task_even_if_its_shim_is_hung(tmp_path: Path, is_hung: bool) -> None:
    master, desired = FakeLinkMaster(), make_desired("setsid sleep 1000 & echo up; sleep 1000")
    data = tmp_path / "data"
    async with serving(master.app()) as url:
        async with agent_on(url, data):
            await master.set_desired(desired)
            await eventually(lambda: master.text_of(desired.container_id) == ["up"])
        state = AgentState(data)
        (folder,) = state.folders()
        assert is_running(folder)
        shim = open_shim(folder)
        assert shim is not None
        if is_hung:
            os.kill(shim[0], signal.SIGSTOP)
        os.close(shim[1])
        assert await asyncio.to_thread(end_tasks, [folder], 1.0 if is_hung else 8.0) == []
        assert not is_running(folder)
        assert processes.marked("DET_CONTAINER_ID", desired.container_id) == set()
        state.close()
        async with agent_on(url, data):
            await eventually(lambda: (t := master.report_of(desired.container_id)) is not None and t.exit is not None)
            report = master.report_of(desired.container_id)
            assert report is not None
            assert report.exit is not None
            assert report.exit.kind == "killed"
