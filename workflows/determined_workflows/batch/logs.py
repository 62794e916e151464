"""The output of jobs: the files that Slurm writes, and their following."""

import glob
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from determined_workflows.batch import job_record
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.status import LOST, PENDING, JobState

POLL_SECONDS = 0.3
STATE_SECONDS = 5.0
_PIECE = 1 << 16


def path_of(record: JobRecord, job: JobState) -> Path | None:
    """Returns the output file of a job, None if it has written none."""
    if _is_of_another(record, job):
        return None
    array, _, element = job.id.partition("_")
    text = glob.escape(record.output.replace("%%", "\0"))
    for letter, value in (("%A", array), ("%a", element), ("%j", job.id), ("%N", "*")):
        text = text.replace(letter, value)
    found = sorted(glob.glob(text.replace("\0", "%")))
    return Path(found[-1]) if found else None


def _is_of_another(record: JobRecord, job: JobState) -> bool:
    """Returns True if the file with the id of a job is another job's: Slurm gives the id of one that it lost again."""
    if job.state in (LOST, PENDING) and not job_record.has_started(record, job.id):
        return True
    if job.is_alive:
        return False
    id = job.id.partition("_")[0]
    records = job_record.all_in(record.folder.parent)
    later = records[[each.nonce for each in records].index(record.nonce) + 1 :]
    return any(id == each.id for other in later if other.output == record.output for each in other.jobs)


def read(path: Path) -> Iterator[bytes]:
    """Yields the content of a file."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def follow(record: JobRecord, look: Callable[[], JobState]) -> Iterator[bytes]:
    """Yields the output of a job as it is written, until the job has ended. ``look`` returns its state."""
    state, looked = look(), time.monotonic()
    place = 0
    while True:
        # In this order: what it wrote just before its end is read too.
        has_ended = not state.is_alive
        path = path_of(record, state)
        if path is not None:
            with path.open("rb") as file:
                file.seek(place)
                while piece := file.read(_PIECE):
                    place += len(piece)
                    yield piece
        if has_ended:
            return
        time.sleep(POLL_SECONDS)
        is_recorded = (record.ends_of(state.id) / "job.json").exists()
        if is_recorded or time.monotonic() - looked > STATE_SECONDS:
            state, looked = look(), time.monotonic()
