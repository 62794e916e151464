"""An agent whose disk is full: starts wait, output waits, and a stop still ends the task."""

import os
import signal
from pathlib import Path

import pytest
from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.small_disk import SmallDisk, disk_fixture
from tests.support.waiting import eventually

from determined.link.run_folder import RunFolder
from determined_agent import container
from determined_agent.drivers.process import open_shim
from determined_agent.output import log_segments
from determined_agent.output.log_segments import STDOUT, SegmentWriter
from determined_agent.task_process import processes

disk = disk_fixture("64m")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "DISK_RETRY_SECONDS", 0.05)


def test_lines_of_a_segment_writer_wait_in_memory_until_there_is_space(disk: SmallDisk) -> None:
    writer = SegmentWriter(disk.path)
    writer.add(STDOUT, b"before", 0.0)
    writer.flush()
    disk.fill()
    lines = [str(number).encode() * 10_000 for number in range(20)]
    for line in lines:
        writer.add(STDOUT, line, 0.0)
        writer.flush()
    assert writer.is_blocked
    disk.free()
    writer.flush()
    assert not writer.is_blocked
    writer.close()
    frames = log_segments.read(disk.path, 0).frames
    assert [frame.line for frame in frames] == [b"before", *lines]


async def test_a_container_desired_on_a_full_disk_starts_when_there_is_space(disk: SmallDisk) -> None:
    master, desired = FakeLinkMaster(), make_desired("echo ran; exit 3")
    async with serving(master.app()) as url, agent_on(url, disk.path / "data"):
        disk.fill()
        await master.set_desired(desired)
        count = len(master.reports)
        await eventually(lambda: len(master.reports) >= count + 2)
        report = master.report_of(desired.container_id)
        assert report is None or not report.state.is_terminal
        disk.free()
        await eventually(lambda: master.text_of(desired.container_id) == ["ran"])
        await eventually(lambda: (t := master.report_of(desired.container_id)) is not None and t.exit is not None)
        report = master.report_of(desired.container_id)
        assert report is not None
        assert report.exit is not None
        assert (report.exit.kind, report.exit.code) == ("exited", 3)


async def test_a_task_that_prints_on_a_full_disk_waits_and_can_still_be_stopped(
    disk: SmallDisk, tmp_path: Path
) -> None:
    counted, go_on = tmp_path / "counted", tmp_path / "go_on"
    count = f"i=$((i+1)); echo $i; printf '%010000d\\n' 0; echo $i > {counted}"
    loop = f"i=0; {count}; until [ -e {go_on} ]; do sleep 0.01; done; while :; do {count}; done"
    master, desired = FakeLinkMaster(), make_desired(loop)
    async with serving(master.app()) as url, agent_on(url, disk.path / "data"):
        await master.set_desired(desired)
        await eventually(lambda: "1" in master.text_of(desired.container_id))
        disk.fill()
        go_on.touch()
        await eventually(lambda: count_in(counted) > 3)
        await master.set_desired(desired.model_copy(update={"state": "stopped", "spec": None}))
        await eventually(lambda: not processes.marked("DET_CONTAINER_ID", desired.container_id))
        assert disk.free_bytes == 0
        disk.free()
        await eventually(lambda: (t := master.report_of(desired.container_id)) is not None and t.output_done)
        report = master.report_of(desired.container_id)
        assert report is not None
        assert report.exit is not None
        assert report.exit.kind == "killed"
    numbers = [int(line) for line in master.text_of(desired.container_id) if len(line) < 10 and line.strip("0")]
    assert numbers == list(range(1, len(numbers) + 1)), "no line is missing"
    assert len(numbers) >= count_in(counted), "the lines that were printed on the full disk are there"


async def test_the_end_of_a_container_is_recorded_when_there_is_space(
    disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    master, desired = FakeLinkMaster(), make_desired("echo up; sleep 1000")
    async with serving(master.app()) as url, agent_on(url, disk.path / "data"):
        await master.set_desired(desired)
        await eventually(lambda: master.text_of(desired.container_id) == ["up"])
        disk.fill()
        shim = open_shim(RunFolder(disk.path / "data" / "runs" / desired.container_id))
        assert shim is not None
        os.kill(shim[0], signal.SIGKILL)
        os.close(shim[1])
        await eventually(lambda: "the end of a container waits" in caplog.text)
        disk.free()
        await eventually(lambda: (t := master.report_of(desired.container_id)) is not None and t.exit is not None)
    report = master.report_of(desired.container_id)
    assert report is not None
    assert report.exit is not None
    assert report.exit.message == "the task's shim ended without an exit record"


def count_in(file: Path) -> int:
    """Returns the number in a file that the task is writing, or 0 while the file is empty."""
    return int(file.read_text() or 0)
