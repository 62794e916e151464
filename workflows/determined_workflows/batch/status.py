"""States of submitted jobs: from the files that their ranks wrote, and from one ``squeue``."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from determined.errors import DeterminedError
from determined_workflows.batch import job_record, slurm_client
from determined_workflows.batch.job_record import JobRecord, SubmittedJob
from determined_workflows.batch.slurm_client import QueuedJob

COMPLETED, FAILED, CANCELLED, TIMEOUT, LOST, UNKNOWN = (
    *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"),
    *("LOST", "UNKNOWN"),
)
NODE_FAIL, PENDING = "NODE_FAIL", "PENDING"
ALIVE = frozenset(
    (PENDING, "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "STAGE_OUT", "STOPPED")
)
RETRIED = frozenset(
    (FAILED, CANCELLED, TIMEOUT, LOST, NODE_FAIL, "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")
)
SLURM_STATE = "slurm_state"
"""File with the last state that Slurm named: it forgets a job after minutes."""
SLACK_SECONDS = 5


@dataclass(frozen=True)
class JobState:
    """The state of a job or of an element of its array. ``detail``: why it waits, where it runs, or how it failed."""

    id: str
    element: int | None
    state: str
    detail: str = ""
    code: int | None = None

    @property
    def is_alive(self) -> bool:
        return self.state in ALIVE


def observe(record: JobRecord, queue: Sequence[QueuedJob] | None) -> tuple[JobRecord, list[JobState]]:
    """Returns the record, with an id that Slurm told late, and the states of its elements.

    ``queue``: the jobs that Slurm knows, None if it does not answer.
    """
    own = [each for each in queue or () if each.nonce == record.nonce]
    record = _adopt(record, own)
    states = []
    for job, element in _latest(record):
        id = job.id if element is None else f"{job.id}_{element}"
        entry = next((each for each in own if _is_of(each, job.id, element)), None)
        found = _state(record, id, element, entry, has_answer=queue is not None)
        if found.state == NODE_FAIL:
            found = replace(found, detail=_failed_node(entry.nodes if entry else "", record.ends_of(id)))
        states.append(found)
        if entry is not None and entry.state not in ALIVE and entry.state not in (COMPLETED, FAILED):
            with suppress(OSError):
                record.ends_of(id).mkdir(parents=True, exist_ok=True)
                (record.ends_of(id) / SLURM_STATE).write_text(entry.state, encoding="utf-8")
    return record, states


def queue_or_none() -> tuple[list[QueuedJob] | None, str]:
    """Returns the jobs that Slurm knows, or None and the reason if it cannot say so."""
    try:
        return slurm_client.queue(), ""
    except DeterminedError as error:
        return None, error.message


def _adopt(record: JobRecord, own: Sequence[QueuedJob]) -> JobRecord:
    """Adds the id of a job whose submission got no answer from Slurm."""
    known = {job.id for job in record.jobs}
    late = [each for each in own if each.array_id not in known]
    if not record.jobs or record.jobs[-1].id or not late:
        return record
    jobs = (*record.jobs[:-1], replace(record.jobs[-1], id=late[-1].array_id))
    record = replace(record, jobs=jobs)
    with suppress(OSError):
        job_record.store(record)
    return record


def _latest(record: JobRecord) -> list[tuple[SubmittedJob, int | None]]:
    """Returns the last job of each element, or of the submission."""
    found: dict[int | None, SubmittedJob] = {}
    for job in record.jobs:
        if job.id or not found:
            found.update(dict.fromkeys(job.elements or (None,), job))
    return [(job, element) for element, job in found.items()]


def _is_of(entry: QueuedJob, job: str, element: int | None) -> bool:
    if element is None:
        return entry.id == job
    return entry.id == f"{job}_{element}" or (entry.array_id == job and element in expand(entry.id))


def expand(id: str) -> Iterator[int]:
    """Yields the elements of a line of ``squeue`` for those that still wait.

    >>> list(expand("25_[1,4-6%3]"))
    [1, 4, 5, 6]
    """
    listed = id.partition("_[")[2].rstrip("]").partition("%")[0]
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            yield from range(int(first), int(last or first) + 1)


def _state(record: JobRecord, id: str, element: int | None, entry: QueuedJob | None, *, has_answer: bool) -> JobState:
    ends = record.ends_of(id)
    end = _read_end(ends)
    if entry is not None and (entry.state in ALIVE or end is None):
        detail = entry.nodes or "" if entry.state != PENDING else entry.reason
        return JobState(id, element, entry.state, detail)
    if entry is not None:
        return JobState(id, element, entry.state, _failure(end, entry.state), end["code"] if end else None)
    known = _last_state(ends)
    if end is not None:
        state = known or _ended(record, ends, end)
        return JobState(id, element, state, _failure(end, state), end["code"])
    if known or record.is_stopped:
        return JobState(id, element, known or CANCELLED)
    if not has_answer:
        return JobState(id, element, UNKNOWN, "Slurm does not answer")
    if not record.jobs[-1].id:
        return JobState(id, element, LOST, "sbatch did not answer, and the job is not in the queue")
    if record.target == "local":
        return JobState(id, element, LOST, "it was killed together with `det batch`, which ran it")
    if job_record.has_started(record, id):
        return JobState(id, element, LOST, "it started, and ended without a record: killed, or its node failed")
    return JobState(id, element, LOST, "it never started: cancelled before its start, or lost by Slurm")


def _read_end(ends: Path) -> dict[str, Any] | None:
    """Returns how a job ended: as its script recorded, else the first failure of a rank."""
    found = _json(ends / "job.json")
    if found is not None:
        return found
    ranks = [rank for path in sorted(ends.glob("[rw]*-*.json")) if (rank := _json(path)) and rank["code"]]
    if not ranks:
        return None
    first = min(ranks, key=lambda rank: (bool(rank["signals"]), rank["time"]))
    return {"code": first["code"], "first_failure": first, "time": first["time"], "signals": first["signals"]}


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _ended(record: JobRecord, ends: Path, end: dict[str, Any]) -> str:
    if "SIGTERM" in end["signals"]:
        with suppress(OSError, ValueError):
            seconds = end["time"] - int(_start(ends)[0])
            if record.time_seconds is not None and seconds >= record.time_seconds - SLACK_SECONDS:
                return TIMEOUT
        return CANCELLED
    return FAILED if end["code"] else COMPLETED


def _start(ends: Path) -> list[str]:
    """Returns when a job started, in seconds, and its nodes. Raises OSError."""
    return (ends / job_record.STARTED).read_text(encoding="utf-8").split()


def _failed_node(nodes: str, ends: Path) -> str:
    """Returns the end of a job that has lost a node. Slurm may have forgotten its ``nodes``; its script has not."""
    with suppress(OSError, IndexError):
        nodes = nodes or _start(ends)[1]
    return f"a node failed: {nodes}" if nodes else "a node failed"


def _last_state(ends: Path) -> str | None:
    try:
        return (ends / SLURM_STATE).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _failure(end: dict[str, Any] | None, state: str) -> str:
    """Returns which rank failed first; nothing for a job that was ended from outside."""
    if state in (COMPLETED, CANCELLED, TIMEOUT):
        return ""
    first = end["first_failure"] if end else None
    if not first:
        return f"exit code {end['code']}" if end and end["code"] else ""
    reason = f": {first['failure']}" if first["failure"] else ""
    return f"rank {first['rank']} on {first['host']} failed first, exit code {first['code']}{reason}"
