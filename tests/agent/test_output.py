"""When a container's output is sent: with the first line of the task, at the latest after a moment."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from determined.link.messages import OutputAck, OutputBatch
from determined.link.run_folder import RunFolder
from determined_agent import output
from determined_agent.http import Answer
from determined_agent.log_segments import AGENT, STDOUT, SegmentWriter
from determined_agent.output import OutputShipper


class Master:
    """Acknowledges every batch."""

    def __init__(self) -> None:
        self.batches: list[OutputBatch] = []
        self.received = asyncio.Event()

    async def request(self, method: str, path: str, body: bytes = b"", **_: Any) -> Answer:
        assert (method, path) == ("POST", "/detent/agents/one/output")
        batch = OutputBatch.model_validate_json(body)
        self.batches.append(batch)
        self.received.set()
        return Answer(200, OutputAck(committed=batch.end).model_dump_json().encode())

    @property
    def lines(self) -> list[list[str]]:
        return [[line.log for line in batch.lines] for batch in self.batches]


class Running:
    """A shipper at work, and the writer of its container."""

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        self.folder.output.mkdir(parents=True)
        os.mkfifo(self.folder.wake)
        self.master = Master()
        self.shipper = OutputShipper(
            self.folder,
            self.master,  # type: ignore[arg-type]
            agent_id="one",
            allocation_id="1.t.1",
            task_id="1.t",
            on_done=lambda: None,
        )
        self._writer = SegmentWriter(self.folder.output)

    def write(self, stream: int, line: str) -> None:
        self._writer.add(stream, line.encode(), 1.0)
        self._writer.flush()
        self.shipper.ring()


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "container")


async def test_lines_of_the_agent_are_sent_with_the_first_line_of_the_task(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "AGENT_LINES_SECONDS", 30.0)
    running.write(AGENT, "library: this one")
    shipping = asyncio.create_task(running.shipper.run())
    await asyncio.sleep(0)
    running.write(AGENT, "user: that one")
    await asyncio.sleep(0)
    running.write(STDOUT, "loss 1")
    await running.master.received.wait()
    running.shipper.finish()
    await shipping
    assert running.master.lines == [["library: this one", "user: that one", "loss 1"]]


async def test_lines_of_the_agent_do_not_wait_long_for_a_task_that_prints_nothing(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "AGENT_LINES_SECONDS", 0.01)
    running.write(AGENT, "pulling an image")
    shipping = asyncio.create_task(running.shipper.run())
    await running.master.received.wait()
    assert running.master.lines == [["pulling an image"]]
    running.shipper.finish()
    await shipping


async def test_a_container_that_ends_without_a_line_of_its_task_is_not_waited_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "AGENT_LINES_SECONDS", 3600.0)
    running.write(AGENT, "cannot start")
    running.shipper.finish()
    await running.shipper.run()
    assert running.master.lines == [["cannot start"]]


async def test_output_that_cannot_be_read_is_retried_and_reported(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(output, "MAX_UNREADABLE", 1)
    for segment in running.folder.output.iterdir():
        segment.unlink()
        segment.mkdir()
    running.shipper.finish()
    await running.shipper.run()
    assert "cannot read output; it is dropped" in caplog.text
