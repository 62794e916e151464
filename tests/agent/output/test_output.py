"""Sending of a container's output: with the task's first lines, after a time limit, or with the report of its end."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import eventually

from determined.link.messages import OutputAck, OutputBatch
from determined.link.run_folder import RunFolder
from determined_agent.master_link.http import HttpAnswer
from determined_agent.output import log_segments
from determined_agent.output import shipper as output
from determined_agent.output.log_segments import AGENT, STDOUT, SegmentWriter
from determined_agent.output.shipper import OutputShipper


class Master:
    """Acknowledges every batch."""

    def __init__(self) -> None:
        self.batches: list[OutputBatch] = []
        self.received = asyncio.Event()

    async def request(self, method: str, path: str, body: bytes = b"", **_: Any) -> HttpAnswer:
        assert (method, path) == ("POST", "/detent/agents/one/output")
        batch = OutputBatch.model_validate_json(body)
        self.batches.append(batch)
        self.received.set()
        return HttpAnswer(200, OutputAck(committed=batch.end).model_dump_json().encode())

    @property
    def lines(self) -> list[list[str]]:
        return [[line.log for line in batch.lines] for batch in self.batches]


class Running:
    """A running shipper and the writer of its container."""

    def __init__(self, folder: Path) -> None:
        self.takes_last_output = True
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
            takes_last_output=lambda: self.takes_last_output,
        )
        self._writer = SegmentWriter(self.folder.output)

    def write(self, stream: int, line: str) -> None:
        self._writer.add(stream, line.encode(), 1.0)
        self._writer.flush()
        self.shipper.wake()


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "container")


async def test_lines_of_the_agent_are_sent_with_the_first_line_of_the_task(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "AGENT_LINES_SECONDS", 30.0)
    monkeypatch.setattr(output, "FIRST_LINES_SECONDS", 0.0)
    reads = 0
    read = log_segments.read

    def counting_read(*arguments: Any, **options: Any) -> log_segments.Chunk:
        nonlocal reads
        chunk = read(*arguments, **options)
        reads += 1
        return chunk

    async def is_read(count: int) -> None:
        await eventually(lambda: reads >= count)
        for _ in range(20):  # lets the shipper act on the read
            await asyncio.sleep(0)

    monkeypatch.setattr(log_segments, "read", counting_read)
    running.write(AGENT, "library: this one")
    shipping = asyncio.create_task(running.shipper.run())
    await is_read(1)
    running.write(AGENT, "user: that one")
    await is_read(2)
    running.write(STDOUT, "loss 1")
    await running.master.received.wait()
    await running.shipper.finish()
    await shipping
    assert running.master.lines == [["library: this one", "user: that one", "loss 1"]]


async def test_the_first_line_of_a_task_waits_for_the_next_lines(running: Running, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output, "FIRST_LINES_SECONDS", 3600.0)
    shipping = asyncio.create_task(running.shipper.run())
    await asyncio.sleep(0)
    for line in ("loss 1", "loss 2"):
        running.write(STDOUT, line)
        await asyncio.sleep(0)
    assert running.master.lines == []
    await running.shipper.finish()
    await shipping
    assert running.master.lines == [["loss 1", "loss 2"]]


async def test_lines_of_the_agent_are_sent_after_a_time_limit_if_the_task_prints_nothing(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "AGENT_LINES_SECONDS", 0.01)
    running.write(AGENT, "pulling an image")
    shipping = asyncio.create_task(running.shipper.run())
    await running.master.received.wait()
    assert running.master.lines == [["pulling an image"]]
    await running.shipper.finish()
    await shipping


async def test_lines_of_the_agent_are_sent_when_a_container_ends_without_output(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "AGENT_LINES_SECONDS", 3600.0)
    running.write(AGENT, "cannot start")
    await running.shipper.finish()
    await running.shipper.run()
    assert running.master.lines == [["cannot start"]]


async def ended(running: Running) -> asyncio.Task[None]:
    """Ends a container with one unsent line. Returns the task that ships its output."""
    running.write(STDOUT, "loss 1")
    shipping = asyncio.create_task(running.shipper.run())
    await asyncio.sleep(0)
    await running.shipper.finish(with_report=True)
    await asyncio.sleep(0)
    return shipping


async def test_the_remaining_output_is_offered_once_for_the_report_of_the_end(running: Running):
    shipping = await ended(running)
    offer = running.shipper.take_offer()
    assert offer is not None
    assert ([line.log for line in offer.lines], offer.start) == (["loss 1"], 0)
    assert running.shipper.take_offer() is None
    running.shipper.answered(offer.end)
    await shipping
    assert (running.master.batches, running.shipper.is_done) == ([], True)


async def test_output_that_the_master_does_not_store_with_the_report_is_sent_by_itself(running: Running):
    shipping = await ended(running)
    running.shipper.answered(0)
    await shipping
    assert running.master.lines == [["loss 1"]]


async def test_last_output_is_sent_by_itself_if_the_master_does_not_answer_in_time(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "ANSWER_SECONDS", 0.01)
    shipping = await ended(running)
    await shipping
    assert running.master.lines == [["loss 1"]]
    running.shipper.answered(0)  # too late


async def test_a_master_of_an_earlier_version_gets_all_output_by_itself(running: Running):
    running.takes_last_output = False
    shipping = await ended(running)
    assert running.shipper.take_offer() is None
    await shipping
    assert running.master.lines == [["loss 1"]]


@pytest.mark.parametrize("lines", [["loss"] * (output.MAX_LAST_LINES + 1), ["x" * output.MAX_LAST_BYTES], []])
async def test_too_much_output_and_no_output_are_not_offered_with_the_report(running: Running, lines: list[str]):
    for line in lines:
        running.write(STDOUT, line)
    shipping = asyncio.create_task(running.shipper.run())
    await asyncio.sleep(0)
    await running.shipper.finish(with_report=True)
    assert running.shipper.take_offer() is None
    await shipping
    assert running.master.lines == ([lines] if lines else [])


async def test_output_that_is_already_being_sent_is_not_offered_with_the_report(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(output, "FIRST_LINES_SECONDS", 0.0)
    may_answer = asyncio.Event()
    answer = running.master.request

    async def slow(*arguments: Any) -> HttpAnswer:
        answered = await answer(*arguments)
        await may_answer.wait()
        return answered

    monkeypatch.setattr(running.master, "request", slow)
    running.write(STDOUT, "loss 1")
    shipping = asyncio.create_task(running.shipper.run())
    await running.master.received.wait()
    await running.shipper.finish(with_report=True)
    assert running.shipper.take_offer() is None
    may_answer.set()
    await shipping
    assert running.master.lines == [["loss 1"]]


async def test_output_that_cannot_be_read_is_dropped_and_logged(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(output, "MAX_UNREADABLE", 1)
    for segment in running.folder.output.iterdir():
        segment.unlink()
        segment.mkdir()
    await running.shipper.finish()
    await running.shipper.run()
    assert "cannot read output; it is dropped" in caplog.text
