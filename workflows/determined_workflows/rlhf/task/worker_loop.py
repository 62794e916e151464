"""The loop that data and model workers share: connect, restore the state, answer requests, store, end."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from determined_workflows.rlhf.task.array_tree import NamedArray
from determined_workflows.rlhf.task.role_place import RolePlace
from determined_workflows.rlhf.task.set_checkpoint import SetCheckpoint
from determined_workflows.rlhf.task.step_file import StepFile
from determined_workflows.rlhf.task.streams import Request, StreamClient

INITIALIZE, STORE, END = "initialize", "store", "end"
CONNECT_SECONDS = 1800.0
"""Time in which every worker has to build its model or its datasets and connect."""

Answer = tuple[NamedArray | None, dict[str, Any]]
Handler = Callable[[Request], Answer]


class Stateful(Protocol):
    """A worker that is stored and restored with the checkpoint of all workers."""

    def initialize(self, request: Request) -> None:
        """Prepares the worker with what the master worker knows."""

    def restore(self, checkpoint: SetCheckpoint, folder: Path) -> None:
        """Continues from a checkpoint's folder; called after :meth:`initialize`."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the process."""
        ...

    def store_files(self, folder: Path, *, saves: bool) -> None:
        """Writes further files into the checkpoint."""

    def after_reply(self) -> None:
        """Is called after each reply, while the master worker does something else."""


def serve(
    worker: Stateful, handlers: Mapping[str, Handler], place: RolePlace, checkpoint: SetCheckpoint, method: str
) -> None:
    """Answers the requests of the master worker until it sends ``end`` or closes the stream.

    A checkpoint is restored at the request ``initialize``, in all workers together.

    Args:
        worker: what is stored and restored.
        handlers: what answers each request besides ``initialize``, ``store`` and ``end``.
        place: which worker this is.
        checkpoint: stores and restores the set.
        method: codec of the replies.

    Raises:
        RuntimeError: a request that this worker does not know.
    """
    master = place.master
    steps = StepFile(os.environ)
    client = StreamClient(master.address, master.port, place.key, place.name, method=method, seconds=CONNECT_SECONDS)
    try:
        while (request := client.receive()) is not None:
            step = int(request.metadata["step"])
            steps.begin(step)
            data, metadata = _answer(worker, handlers, request, place, checkpoint)
            client.reply(request, data, **metadata)
            if request.handle == END:
                return
            worker.after_reply()
            steps.end(step)
    finally:
        client.close()


def _answer(
    worker: Stateful, handlers: Mapping[str, Handler], request: Request, place: RolePlace, checkpoint: SetCheckpoint
) -> Answer:
    if request.handle == INITIALIZE:
        worker.initialize(request)
        uuid = checkpoint.latest()
        if uuid is not None:
            with checkpoint.restored(uuid) as folder:
                worker.restore(checkpoint, folder)
    elif request.handle == STORE:
        saves = bool(request.metadata["saves"])
        checkpoint.store(
            int(request.metadata["step"]),
            worker.state_dict(),
            lambda folder: worker.store_files(folder, saves=saves),
        )
    elif request.handle in handlers:
        return handlers[request.handle](request)
    elif request.handle != END:
        raise RuntimeError(f"{place.name} cannot answer {request.handle!r}")
    return None, {}
