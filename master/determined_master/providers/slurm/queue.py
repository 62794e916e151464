"""Reads the output of ``squeue`` and says what it means for a pilot. Pure.

The columns have fixed widths: plain ``-O`` with old fields works in every version, and ``--json`` ignores filters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from determined_master.providers.provider import Observation, ObservedState, how_ended
from determined_workflows.batch import durations

COLUMNS = (
    ("JobID", 18),
    ("State", 16),
    ("Reason", 80),
    ("TimeLeft", 20),
    ("PreemptTime", 22),
    ("EndTime", 22),
    ("StartTime", 22),
    ("exit_code", 10),
    ("NodeList", 80),
    ("Comment", 160),
)
FORMAT = ",".join(f"{name}:{width}" for name, width in COLUMNS)
UNKNOWN_GRACE = timedelta(seconds=15)
"""Time that a job is taken to have left that ends now: Slurm says when only a little later, and its tasks may save."""
NO_LIMIT = timedelta(days=180)
"""Slurm gives a year to a job of a partition without a limit."""

FINAL = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
        *("REVOKED", "SPECIAL_EXIT", "TIMEOUT"),
    )
)
WAITING = frozenset(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"))
COMPLETING = "COMPLETING"

_REASONS = {
    "None": "Slurm has not looked at it yet",
    "Priority": "jobs of higher priority come first",
    "Resources": "waits for resources",
    "BeginTime": "it may not begin yet",
    "Dependency": "waits for another job",
    "InactiveLimit": "the partition's limit for inactive jobs is reached",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "its owner holds it",
    "JobLaunchFailure": "it could not be started on its nodes",
    "Licenses": "waits for a licence",
    "NodeDown": "a node that it needs is down",
    "PartitionConfig": "its partition cannot give what the pool asks for",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "it needs more nodes than its partition gives",
    "PartitionTimeLimit": "its time limit is above that of its partition",
    "ReqNodeNotAvail": "a node that it needs is not available",
    "Reservation": "waits for its reservation",
}
_REASON_PREFIXES = (
    ("QOSMax", "the limit of its quality of service is reached"),
    ("QOSGrp", "the limit of its quality of service for all its jobs is reached"),
    ("QOS", "its quality of service does not let it start"),
    ("AssocMax", "the limit of its account is reached"),
    ("AssocGrp", "the limit of its account for all its jobs is reached"),
    ("Assoc", "its account does not let it start"),
    ("MaxJob", "the maximum number of jobs is reached"),
    ("ReqNodeNotAvail", _REASONS["ReqNodeNotAvail"]),
)


@dataclass(frozen=True)
class SlurmJob:
    """One job as ``squeue`` shows it. ``exit_status``: the wait status of its script."""

    id: str
    state: str
    comment: str
    reason: str = ""
    seconds_left: float | None = None
    is_preempted: bool = False
    """True once Slurm has told it to leave."""
    end: datetime | None = None
    """When Slurm ends a job that runs; earlier than its time limit if it is preempted."""
    start: datetime | None = None
    exit_status: int = 0
    nodes: str = ""

    @property
    def name(self) -> str:
        return f"Slurm job {self.id}"

    @property
    def is_live(self) -> bool:
        """True for a job that can be cancelled."""
        return self.state not in FINAL and self.state != COMPLETING


def parse(output: bytes, prefix: str) -> list[SlurmJob]:
    """Returns the jobs whose comment begins with ``prefix``. Widths count bytes, as Slurm does."""
    jobs = []
    for line in output.split(b"\n"):
        values, place = {}, 0
        for name, width in COLUMNS:
            values[name] = line[place : place + width].decode(errors="replace").strip()
            place += width
        if values["Comment"].startswith(prefix) and values["JobID"]:
            jobs.append(_job(values))
    return jobs


def newest_of(jobs: Iterable[SlurmJob]) -> dict[str, SlurmJob]:
    """Returns the job of each comment: one that has not ended before one that has, then that with the larger id."""
    found: dict[str, SlurmJob] = {}
    for job in sorted(jobs, key=lambda job: (job.state not in FINAL, len(job.id), job.id)):
        found[job.comment] = job
    return found


def observation(job: SlurmJob, now: datetime, *, last_line: str = "") -> Observation:
    """Returns what a job means for its pilot.

    Parameters:
        now: the time of the look by the master's clock.
        last_line: the last line of the output of a pilot that has ended by itself.
    """
    if job.state in FINAL:
        return Observation(ObservedState.GONE, _cause(job, last_line), origin=job.name)
    if job.state in WAITING:
        words = f"{job.name}: {reason_in_words(job.reason)}"
        return Observation(ObservedState.QUEUED, words, start_estimate=job.start, origin=job.name)
    if job.state == COMPLETING:
        return Observation(ObservedState.RUNNING, f"{job.name} ends", now + UNKNOWN_GRACE, origin=job.name)
    if job.is_preempted:
        why, is_known = f"{job.name} is preempted by Slurm", job.end is not None and job.end > now
        return Observation(ObservedState.RUNNING, why, job.end if is_known else now + UNKNOWN_GRACE, origin=job.name)
    if job.seconds_left is None or job.seconds_left > NO_LIMIT.total_seconds():
        return Observation(ObservedState.RUNNING, origin=job.name)
    leaves_at = now + timedelta(seconds=job.seconds_left)
    why = f"time limit of {job.name}"
    return Observation(ObservedState.RUNNING, why, leaves_at, has_time_limit=True, origin=job.name)


def reason_in_words(reason: str) -> str:
    """Returns why Slurm lets a job wait, with Slurm's own word.

    >>> reason_in_words("Resources"), reason_in_words("QOSMaxJobsPerUserLimit")
    ('waits for resources (Resources)', 'the limit of its quality of service is reached (QOSMaxJobsPerUserLimit)')
    """
    words = _REASONS.get(reason) or next((text for start, text in _REASON_PREFIXES if reason.startswith(start)), "")
    return f"{words} ({reason})" if words else f"waits ({reason or 'no reason given'})"


def _cause(job: SlurmJob, last_line: str) -> str:
    nodes = job.nodes or "(unknown)"
    # The agents of several nodes end in the grace time of a preemption, once their tasks have.
    match "PREEMPTED" if job.is_preempted and job.state in ("COMPLETED", "FAILED") else job.state:
        case "CANCELLED":
            return f"{job.name} was cancelled outside Detent"
        case "TIMEOUT" | "DEADLINE":
            return f"{job.name} reached its time limit"
        case "PREEMPTED":
            return f"{job.name} was preempted by Slurm"
        case "NODE_FAIL" | "BOOT_FAIL":
            one = f"a node of {nodes}" if "," in nodes or "[" in nodes else f"node {nodes}"
            return f"{one} failed ({job.name})"
        case "OUT_OF_MEMORY":
            return f"{job.name} used more memory than it may; raise mem of the pool's sbatch options"
    how = _how(job.exit_status)
    return f"the agent of {job.name} ended ({how})" + (f": {last_line}" if last_line else "")


def _how(status: int) -> str:
    number, code = status & 0x7F, status >> 8
    return how_ended(-number if number else code)


def _job(values: dict[str, str]) -> SlurmJob:
    preempted, is_pending = _time(values["PreemptTime"]), values["State"] in WAITING
    return SlurmJob(
        id=values["JobID"],
        state=values["State"],
        comment=values["Comment"],
        reason=values["Reason"],
        seconds_left=None if is_pending else _seconds(values["TimeLeft"]),
        is_preempted=preempted is not None,
        end=None if is_pending else _time(values["EndTime"]),
        start=_time(values["StartTime"]),
        exit_status=int(values["exit_code"]) if values["exit_code"].isdecimal() else 0,
        nodes=values["NodeList"],
    )


def _seconds(text: str) -> float | None:
    """Returns the seconds of a column such as 1-02:03:04 or 4:05; None for UNLIMITED, INVALID and NOT_SET."""
    if not text[:1].isdecimal():
        return None
    try:
        return float(durations.seconds(text) or 0)
    except ValueError:
        return None


def _time(text: str) -> datetime | None:
    """Returns a time of ``squeue``, which is asked for UTC; None for N/A, NONE and Unknown."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
