"""The loop of data and model workers over a real stream, and what the master worker says about missing workers."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from determined import core
from determined_workflows.rlhf.task import master_worker, worker_loop
from determined_workflows.rlhf.task.call_watch import TrackedRequests
from determined_workflows.rlhf.task.named_array import from_dict
from determined_workflows.rlhf.task.role_place import RolePlace, RoleProcess
from determined_workflows.rlhf.task.set_checkpoint import FOLDER, SetCheckpoint
from determined_workflows.rlhf.task.streams import Request, StreamServer, WorkersMissing

KEY = b"k" * 32


class Worker:
    """Counts, and is stored with its count."""

    def __init__(self) -> None:
        self.count = 0
        self.replies = 0

    def initialize(self, request: Request) -> None:
        self.count = int(request.metadata["first"])

    def restore(self, checkpoint: SetCheckpoint, folder: Path) -> None:
        self.count = int(checkpoint.read(folder)["count"])

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def store_files(self, folder: Path, *, saves: bool) -> None:
        if saves:
            (folder / "saved").write_text("x")

    def after_reply(self) -> None:
        self.replies += 1

    def add(self, request: Request) -> worker_loop.Answer:
        self.count += 1
        return from_dict({"double": request.data["x"] * 2}), {"count": self.count}


class Running:
    """A server, and a worker that serves in a thread."""

    def __init__(self, folder: Path) -> None:
        self.server = StreamServer(0, KEY, ["actor[0]"], host="127.0.0.1")
        self.requests = TrackedRequests(self.server)
        self.worker, self.errors = Worker(), list[BaseException]()
        master = RoleProcess(0, "127.0.0.1", self.server.port)
        self._place = RolePlace("actor", 0, {"master_worker": (master,)}, KEY)
        self._folder = folder
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        self.server.wait_for_workers(10)

    def ask(self, handle: str, **metadata: Any) -> Any:
        return self.requests.request("actor[0]", handle, from_dict({"x": torch.ones(2)}), **metadata).result(10)

    def end(self) -> None:
        self.server.close()
        self.thread.join(10)
        assert not self.thread.is_alive()

    def _serve(self) -> None:
        try:
            with core.init(checkpoint_storage=str(self._folder / "checkpoints")) as context:
                checkpoint = SetCheckpoint(context, "actor-0", {FOLDER: str(self._folder)})
                worker_loop.serve(self.worker, {"add": self.worker.add}, self._place, checkpoint, "raw_bytes")
        except BaseException as error:
            self.errors.append(error)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.end()


def test_a_worker_answers_with_arrays_and_metadata(running: Running) -> None:
    running.ask("initialize", first=5)
    reply = running.ask("add")
    assert torch.as_tensor(reply.data["double"]).tolist() == [2, 2]
    assert reply.metadata == {"count": 6}


def test_a_stored_worker_continues_from_its_state(tmp_path: Path) -> None:
    first = Running(tmp_path)
    first.ask("initialize", first=5)
    first.ask("add")
    first.requests.step = 3
    first.ask("store", saves=True)
    first.end()
    (stored,) = (tmp_path / "checkpoints").iterdir()
    assert (stored / "saved").exists()
    second = Running(tmp_path)
    second.ask("initialize", first=100)
    assert second.ask("add").metadata == {"count": 7}
    second.end()


def test_a_worker_ends_when_it_is_told_to(running: Running) -> None:
    running.ask("end")
    assert running.errors == []
    assert running.worker.replies == 0


def test_a_request_that_a_worker_does_not_know_ends_it(running: Running) -> None:
    running.requests.request("actor[0]", "dance")
    running.thread.join(10)
    assert str(running.errors[0]) == "actor[0] cannot answer 'dance'"


def test_workers_that_do_not_come_are_named_while_the_others_wait(capsys: pytest.CaptureFixture[str]) -> None:
    server = StreamServer(0, KEY, ["actor[0]", "critic[0]"], host="127.0.0.1")
    try:
        with pytest.raises(WorkersMissing, match=r"2 workers did not connect within 0.3 s: actor\[0\], critic\[0\]"):
            master_worker.wait_for_workers(server, 0.3, tell_every=0.1)
    finally:
        server.close()
    assert "waiting for actor[0], critic[0]" in capsys.readouterr().out


def test_a_batch_that_the_replicas_of_a_model_do_not_divide_is_refused_before_the_first_step() -> None:
    master_worker.check_batch(8, {"actor": ["actor[0]", "actor[1]"]})
    master_worker.check_batch(0, {"actor": ["actor[0]", "actor[1]"]})
    with pytest.raises(ValueError, match="a batch of 7 cannot be divided over the 2 replicas of actor"):
        master_worker.check_batch(7, {"actor": ["actor[0]", "actor[1]"]})
