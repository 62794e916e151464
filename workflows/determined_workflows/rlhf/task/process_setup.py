"""Prepares the process of a worker: threads, deterministic algorithms, device, process group and signals."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

import torch
import torch.distributed

from determined_launch.environment import TaskFacts

REPEAT_SECONDS = 1.0
"""A terminal sends Ctrl-C to every process and the launch layer forwards it: signals this close are one request."""


def use_deterministic_algorithms(environ: Mapping[str, str]) -> None:
    """Makes sums on the processor independent of the machine: one thread unless ``OMP_NUM_THREADS`` says otherwise."""
    if not environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(1)
    if not torch.cuda.is_available():
        torch.use_deterministic_algorithms(True, warn_only=True)


def device() -> torch.device:
    """Returns the device of this worker: its first GPU, or the processor."""
    if torch.cuda.is_available():
        torch.cuda.set_device(0)
        return torch.device("cuda", 0)
    return torch.device("cpu")


@contextlib.contextmanager
def process_group(used: torch.device, environ: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Opens the process group of this model's replicas and yields rank and size; also for a single replica."""
    backend = "nccl" if used.type == "cuda" else "gloo"
    size = int(environ.get("WORLD_SIZE") or 1)
    if size > 1:
        torch.distributed.init_process_group(backend)
    else:
        # interfaces call torch.distributed whatever the number of replicas; one needs no port
        store = torch.distributed.HashStore()  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateImportUsage]  # torch exports it conditionally
        torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
    try:
        yield torch.distributed.get_rank(), size
    finally:
        torch.distributed.destroy_process_group()


def leave_signals_to_the_master_worker() -> None:
    """Ignores the first Ctrl-C or SIGTERM off the cluster: the master worker stores the checkpoints of all workers
    and ends them.

    A later one ends this process, as it ends the master worker. A thread notices it, so that also a worker ends that
    hangs outside of Python.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)
    threading.Thread(target=_end_at_a_later_signal, args=(reader,), name="signals", daemon=True).start()


def _end_at_a_later_signal(reader: int) -> None:
    first = None
    while True:
        number, now = os.read(reader, 1)[0], time.monotonic()
        if number not in (signal.SIGINT, signal.SIGTERM):  # as SIGCHLD, of which a data loader with workers is told
            continue
        first = now if first is None else first
        if now - first > REPEAT_SECONDS:
            os._exit(128 + number)


class StopRequest:
    """Notices Ctrl-C and SIGTERM off the cluster. The first asks for a stop after the step, a later one ends at once.

    Args:
        clock: seconds that only grow.
        tell: prints what the first signal leads to.
    """

    def __init__(self, clock: Callable[[], float], tell: Callable[[str], object]) -> None:
        self._clock = clock
        self._tell = tell
        self._since: float | None = None

    def install(self) -> None:
        """Sets the handlers; main thread only."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handles one signal. Raises SystemExit for one that is no repetition of the first."""
        now = self._clock()
        if self._since is None:
            self._since = now
            if number == signal.SIGINT:  # SIGTERM may also be the layer's, after a worker failed
                self._tell("the state of all workers is stored after this step; press Ctrl-C again to end without it")
        elif now - self._since > REPEAT_SECONDS:
            raise SystemExit(128 + number)

    @property
    def is_asked(self) -> bool:
        """Returns True after a signal."""
        return self._since is not None


def checkpoint_storage(environ: Mapping[str, str]) -> str | None:
    """Returns the folder of checkpoints of a run off the cluster; None if it has none, and on a cluster."""
    folder = environ.get("DETENT_RLHF_FOLDER")
    is_on_cluster = TaskFacts.from_environment(environ) is not None  # a user may have set DET_MASTER
    return os.path.join(folder, "checkpoints") if folder and not is_on_cluster else None
