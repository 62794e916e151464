"""This process's input on its way to a program beside a task."""

import asyncio
import gc
from types import SimpleNamespace
from typing import cast

import pytest

from determined.streams.records import Kind, Record
from determined_cli.streams import execution
from determined_cli.streams.stream_client import StreamClient


class Sent:
    """A stream that notes what is sent."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def send(self, record: Record) -> None:
        self.records.append(record)


def client_of(stream: Sent) -> StreamClient:
    return cast(StreamClient, SimpleNamespace(stream=stream))


@pytest.fixture(autouse=True)
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The input is a word and its end."""
    pieces = [b"word", b""]
    monkeypatch.setattr(execution.sys, "stdin", SimpleNamespace(fileno=lambda: 0))
    monkeypatch.setattr(execution, "os", SimpleNamespace(read=lambda _descriptor, _most: pieces.pop(0)))


async def test_input_is_sent_with_its_end() -> None:
    stream = Sent()
    await asyncio.to_thread(execution.read_input, client_of(stream), asyncio.get_running_loop())
    assert [(record.kind, record.content) for record in stream.records] == [(Kind.INPUT, b"word"), (Kind.END, b"")]


@pytest.mark.filterwarnings("error")
def test_input_that_comes_after_the_end_of_the_session_is_dropped_without_a_word(capfd: pytest.CaptureFixture[str]):
    loop = asyncio.new_event_loop()
    loop.close()
    stream = Sent()
    execution.read_input(client_of(stream), loop)
    gc.collect()
    assert stream.records == []
    assert capfd.readouterr() == ("", "")
