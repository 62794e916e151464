"""Runs a submission on this machine: its processes have the grid runner's supervisor, and their ends are stored."""

import fcntl
import os
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from determined.errors import ConfigError, Conflict
from determined_launch import pid_lock
from determined_launch.pid_lock import LockHeld, PidLock
from determined_workflows.batch import job_record, status
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.local_script import GRACE_SECONDS
from determined_workflows.batch.slurm_client import COMMENT_PREFIX, QueuedJob
from determined_workflows.runner.processes import CommandProcesses, End
from determined_workflows.runner.signals import KILL, Signals
from determined_workflows.runner.supervisor import Start

LOCK, STATE, NUMBER = "run.lock", "state", ".local-number"
PREFIX = "local-"
"""Before the number of a job: output files and ids of Slurm stay apart."""
RUNNING = "RUNNING"
POLL_SECONDS = 0.2
STOP_SECONDS = GRACE_SECONDS + 10.0
"""After this time a submission that was asked to end should have killed its programs."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class LocalEnd:
    """How a run of a job ended: its code is that of the program."""

    id: str
    code: int


def next_id(records: Path) -> str:
    """Returns the id of a new job, such as ``local-7``: no other job of the project has it. Raises OSError."""
    records.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(records / NUMBER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        number = str(int(text) + 1 if text.isdigit() else 1)
        os.pwrite(descriptor, number.encode(), 0)
    finally:
        os.close(descriptor)
    return f"{PREFIX}{number}"


def output_path(record: JobRecord, id: str, host: str) -> Path:
    """Returns the output file of a run: the pattern of ammunk/hpc with the local number."""
    array, _, element = id.partition("_")
    text = record.output.replace("%%", "\0")
    for letter, value in (("%A", array), ("%a", element), ("%j", id), ("%N", host)):
        text = text.replace(letter, value)
    return Path(text.replace("\0", "%"))


def devices(gpus: int, worker: int, environ: Mapping[str, str], present: int) -> str:
    """Returns ``CUDA_VISIBLE_DEVICES`` of a worker: GPUs of its own if there are enough, else the first ones.

    >>> devices(2, 1, {}, 4), devices(2, 1, {}, 2), devices(1, 0, {"CUDA_VISIBLE_DEVICES": "3,5"}, 8)
    ('2,3', '0,1', '3')
    """
    given = environ.get(VISIBLE)
    names = [each for each in given.split(",") if each] if given is not None else list(map(str, range(present)))
    first = worker * gpus
    return ",".join(names[first : first + gpus] if first + gpus <= len(names) else names[:gpus])


def gpus_here() -> int:
    """Returns the number of NVIDIA GPUs of this machine."""
    return sum(path.name[len("nvidia") :].isdigit() for path in Path("/dev").glob("nvidia*"))


def queue(record: JobRecord) -> list[QueuedJob]:
    """Returns the runs of a submission that wait or run on a machine without Slurm, in the form of ``squeue``."""
    lock = record.folder / LOCK
    if not record.jobs or pid_lock.holder(lock) is None:
        return []
    job = record.jobs[-1]
    host = pid_lock.other_host(lock) or os.uname().nodename
    runs = []
    for id in ids(job.id, job.elements):
        state = _read(record.ends_of(id) / STATE)
        if state in ("", RUNNING):
            comment = f"{COMMENT_PREFIX}{record.nonce}"
            runs.append(QueuedJob(id, job.id, "", state or "PENDING", "", host, comment, ""))
    return runs


def stop(record: JobRecord) -> None:
    """Ends a submission that runs here, and waits for its end.

    Raises Conflict if nothing of it runs, if it runs on another machine, and if it does not end.
    """
    lock = record.folder / LOCK
    pid = pid_lock.holder(lock)
    if pid is None:
        raise Conflict(f"nothing of {record.name} runs; `det batch status {record.name}` prints how it ended")
    host = pid_lock.other_host(lock)
    if host is not None:
        raise Conflict(f"{record.name} runs on {host} (process {pid}); run `det batch stop {record.name}` there")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # its supervisor ends
    except PermissionError:
        raise Conflict(f"{record.name} (process {pid}) is run by another user") from None
    deadline = time.monotonic() + STOP_SECONDS
    while pid_lock.holder(lock) == pid:
        if time.monotonic() >= deadline:
            raise Conflict(
                f"{record.name} (process {pid}) has not ended after {STOP_SECONDS:g} s; "
                f"`det batch stop {record.name}` once more kills its programs"
            )
        time.sleep(POLL_SECONDS)


def ids(job: str, elements: Sequence[int]) -> list[str]:
    """Returns the ids of the runs of a job: its number, and that of each run of a sweep."""
    return [f"{job}_{element}" for element in elements] or [job]


class LocalRun:
    """The runs of the newest job of a record.

    Parameters:
        say: takes a line when a run has ended.
        parallel: how many run at once.
        gpus: GPUs of each.
        seconds: time limit of each, None without one.
    """

    def __init__(
        self, record: JobRecord, say: Callable[[str], None], *, parallel: int, gpus: int, seconds: int | None
    ) -> None:
        job = record.jobs[-1]
        self._say = say
        self._record, self._gpus, self._seconds = record, gpus, seconds
        self._waiting = deque(ids(job.id, job.elements))
        self._free = deque(range(parallel))
        self._workers: dict[str, int] = {}
        self._host = os.uname().nodename
        self._present = gpus_here()
        self._shown = output_path(record, self._waiting[0], self._host) if not job.elements else None
        self._place = 0
        self._kill_at: float | None = None
        self._ended_by: int | None = None

    def run(self) -> tuple[list[LocalEnd], int | None]:
        """Runs all. Returns how they ended, and the signal that stopped them. Raises ConfigError and Conflict."""
        ends: list[LocalEnd] = []
        try:
            with PidLock(self._record.folder / LOCK) as lock:
                processes = CommandProcesses(lock.fileno())
                try:
                    with Signals() as signals:
                        for end in self._ends(processes, signals):
                            ends.append(end)
                finally:
                    processes.close()
                    self._show()
        except LockHeld as error:
            raise Conflict(f"{self._record.name} runs already (process {error.pid or 'unknown'})") from None
        except OSError as error:
            raise ConfigError(f"{error.filename or self._record.folder}: {error.strerror}") from None
        return ends, self._ended_by

    def _ends(self, processes: CommandProcesses, signals: Signals) -> Iterator[LocalEnd]:
        while True:
            while self._free and self._waiting and self._ended_by is None and not processes.is_lost:
                self._start(processes, self._waiting.popleft(), self._free.popleft())
            if not self._workers:
                self._settle_waiting()
                return
            ready = wait([processes.fileno(), signals.fileno()], POLL_SECONDS)
            self._heed(processes, signals)
            self._show()
            if processes.fileno() in ready:
                for end in processes.ends():
                    self._free.append(self._workers.pop(end.id))
                    yield self._settled(end)

    def _start(self, processes: CommandProcesses, id: str, worker: int) -> None:
        record = self._record
        ends = record.ends_of(id)
        ends.mkdir(parents=True, exist_ok=True)
        (ends / status.SLURM_STATE).unlink(missing_ok=True)
        job, _, element = id.partition("_")
        seconds = f" DETENT_SECONDS={self._seconds}" if self._seconds else ""
        command = f"DETENT_JOB={job} DETENT_ELEMENT={element}{seconds} exec bash {shlex.quote(str(record.script))}"
        log = output_path(record, id, self._host)
        resource = devices(self._gpus, worker, os.environ, self._present)
        self._workers[id] = worker
        start = Start(command, resource, str(log), str(ends / STATE), RUNNING, status.COMPLETED, status.FAILED)
        processes.start(id, start)

    def _settled(self, end: End) -> LocalEnd:
        """Stores what the script of a run that was killed could not store."""
        ends = self._record.ends_of(end.id)
        code = 1 if end.code is None else end.code if end.code >= 0 else 128 - end.code
        with suppress(OSError):
            if self._ended_by is not None:
                (ends / status.SLURM_STATE).write_text(status.CANCELLED, encoding="utf-8")
            elif not (ends / "job.json").exists():
                (ends / status.SLURM_STATE).write_text(status.FAILED, encoding="utf-8")
        self._show()
        how = end.reason or (f"exit code {code}" if code else "completed")
        self._say(f"{end.id}: {how}; its output: {output_path(self._record, end.id, self._host)}")
        return LocalEnd(end.id, code)

    def _settle_waiting(self) -> None:
        for id in self._waiting:
            with suppress(OSError):
                self._record.ends_of(id).mkdir(parents=True, exist_ok=True)
                (self._record.ends_of(id) / status.SLURM_STATE).write_text(status.CANCELLED, encoding="utf-8")

    def _heed(self, processes: CommandProcesses, signals: Signals) -> None:
        """The first signal asks the programs to end; the second one, or the end of the grace period, kills them."""
        for number in signals.read():
            if self._ended_by is None and number != KILL:
                processes.signal(signal.SIGTERM)
                self._kill_at = time.monotonic() + GRACE_SECONDS
            else:
                processes.signal(signal.SIGKILL)
            self._ended_by = self._ended_by or number
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            processes.signal(signal.SIGKILL)
            self._kill_at = None

    def _show(self) -> None:
        """Prints what the program has written since the last time."""
        if self._shown is None or not self._shown.exists():
            return
        with self._shown.open("rb") as file, suppress(BrokenPipeError):
            file.seek(self._place)
            while piece := file.read(1 << 16):
                self._place += len(piece)
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def with_new_job(record: JobRecord, elements: tuple[int, ...]) -> JobRecord:
    """Returns the stored record with one more job. Raises OSError."""
    record = job_record.with_job(record, next_id(record.folder.parent), elements)
    job_record.store(record)
    return record


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
