"""``stop`` and ``retry``: cancel what is left of a submission, submit again what has failed."""

import shlex
from dataclasses import dataclass, replace
from itertools import groupby

from determined.errors import Conflict
from determined_workflows.batch import job_record, slurm_client, status, submission
from determined_workflows.batch.job_record import JobRecord


def stop(record: JobRecord, element: int | None = None) -> list[str]:
    """Cancels the jobs of a submission that wait or run, or one element alone, and returns their ids.

    The nonce decides: the id of a job that Slurm has lost may be somebody else's by now. Raises Conflict if nothing is
    left, and SlurmError.
    """
    queue = slurm_client.queue()
    record, states = status.observe(record, queue)
    alive = [each for each in queue if each.nonce == record.nonce and each.state in status.ALIVE]
    jobs = sorted({each.array_id for each in alive})
    if element is not None:
        jobs = [each.id for each in states if each.element == element and each.is_alive and jobs]
    if not jobs:
        raise Conflict(f"nothing of {record.name} waits or runs; `det batch status {record.name}` prints how it ended")
    for job in jobs:
        slurm_client.cancel(job, record.job_name)
    if element is None:
        job_record.store(replace(record, is_stopped=True))
    return jobs


@dataclass(frozen=True)
class Retry:
    """A submission that can be submitted again: all of it, or the ``elements`` of its array that have failed."""

    record: JobRecord
    words: tuple[str, ...]
    elements: tuple[int, ...]

    @property
    def shown_command(self) -> str:
        return shlex.join(["sbatch", *self.words])


def prepare_retry(record: JobRecord, element: int | None = None) -> Retry:
    """Returns what has failed of a submission, or one element alone. Raises Conflict if nothing has, ConfigError if
    what it needs is gone, and SlurmError."""
    record, states = status.observe(record, slurm_client.queue())
    states = [each for each in states if element in (None, each.element)]
    failed = [each for each in states if each.state in status.RETRIED]
    if not failed:
        kinds = ", ".join(sorted({each.state for each in states}))
        raise Conflict(f"nothing of {record.name} has failed: {kinds}")
    job_record.check_inputs(record)
    elements = tuple(each.element for each in failed if each.element is not None)
    words = submission.sbatch_words(record, ranges(elements) if elements else None)
    return Retry(record, (*words, *record.sbatch_words, str(record.script)), elements)


def retry(again: Retry) -> str:
    """Submits it and returns the id of the job. Raises SlurmError."""
    job = slurm_client.submit(again.words)
    job_record.store(job_record.with_job(again.record, job, again.elements))
    return job


def ranges(elements: tuple[int, ...]) -> str:
    """Returns elements of an array in the form of ``sbatch``.

    >>> ranges((1, 2, 3, 7))
    '1-3,7'
    """
    parts = []
    for _, group in groupby(enumerate(elements), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in group]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ",".join(parts)
