"""Ending tasks by their run folders alone; the next agent reports them as killed."""

import asyncio
import os
import select
import signal
from pathlib import Path

import pytest
from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined_agent.drivers.driver import ProcessOptions
from determined_agent.drivers.process import ProcessDriver, open_shim
from determined_agent.run_folders.agent_state import AgentState
from determined_agent.run_folders.end_tasks import end_tasks, is_running
from determined_agent.task_process import processes


@pytest.mark.parametrize("number", [None, signal.SIGSTOP, signal.SIGKILL], ids=["alive", "hung", "dead"])
async def test_end_tasks_ends_a_task_whatever_became_of_its_shim(tmp_path: Path, number: signal.Signals | None) -> None:
    master, desired = FakeLinkMaster(), make_desired("setsid sleep 1000 & echo up; sleep 1000")
    data = tmp_path / "data"
    async with serving(master.app()) as url:
        driver = ProcessDriver(ProcessOptions(pids=False))  # a pid namespace ends with its shim
        async with agent_on(url, data, driver=driver):
            await master.set_desired(desired)
            await eventually(lambda: master.text_of(desired.container_id) == ["up"])
        state = AgentState(data)
        (folder,) = state.folders()
        assert is_running(folder)
        shim = open_shim(folder)
        assert shim is not None
        if number is not None:
            os.kill(shim[0], number)
        if number == signal.SIGKILL:
            await asyncio.to_thread(select.select, [shim[1]], [], [])
            assert is_running(folder), "the processes of the task live"
        os.close(shim[1])
        assert await asyncio.to_thread(end_tasks, [folder], 1.0 if number == signal.SIGSTOP else 8.0) == []
        assert not is_running(folder)
        assert processes.marked("DET_CONTAINER_ID", desired.container_id) == set()
        state.close()
        async with agent_on(url, data):
            await eventually(lambda: (t := master.report_of(desired.container_id)) is not None and t.exit is not None)
            report = master.report_of(desired.container_id)
            assert report is not None
            assert report.exit is not None
            assert report.exit.kind == "killed"
