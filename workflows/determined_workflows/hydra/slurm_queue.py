"""The jobs of Slurm that belong to a run folder, from one bounded ``squeue``.

A job is known by the path of its script, which lies in the run folder and has a random name: an id alone may be that of
somebody else's job by now.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from determined.errors import ConfigError, DeterminedError

TIMEOUT_SECONDS = 10.0
_COLUMNS = "%i|%T|%o"
_ENDED = frozenset(
    ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")
)


class QueuedJob(NamedTuple):
    """A job that waits or runs. ``number`` is its place in the array, which is the number of the job of Hydra."""

    id: str
    number: int
    state: str


def require_slurm() -> None:
    """Raises ConfigError if this machine cannot submit to Slurm."""
    if shutil.which("sbatch") is None:
        raise ConfigError("Slurm is not installed on this machine (no sbatch); use --on local or --on det")


def jobs(folder: Path) -> list[QueuedJob]:
    """Returns the jobs whose scripts lie in ``folder``, by their numbers. Raises DeterminedError if Slurm does not
    answer."""
    return parse(_ask(["squeue", "--noheader", "--array", f"--format={_COLUMNS}"]), folder)


def parse(text: str, folder: Path) -> list[QueuedJob]:
    """Returns the jobs of ``folder`` in the output of ``squeue``.

    >>> parse("12_1|RUNNING|/runs/a/.submitit/s.sh\\n13|RUNNING|/home/b/s.sh\\n", Path("/runs/a/.submitit"))
    [QueuedJob(id='12_1', number=1, state='running')]
    """
    rows = []
    inside = f"{os.path.abspath(folder)}/"
    for line in text.splitlines():
        id, _, rest = line.partition("|")
        state, _, script = rest.partition("|")
        if script.strip().startswith(inside) and state not in _ENDED:
            number = id.partition("_")[2]
            rows.append(QueuedJob(id, int(number) if number.isdigit() else 0, state.lower()))
    return sorted(rows, key=lambda job: job.number)


def cancel(found: Sequence[QueuedJob], *, is_killing: bool = False) -> None:
    """Ends jobs of Slurm. Raises DeterminedError if Slurm does not answer."""
    words = ["--signal=KILL", "--full"] if is_killing else []
    running = [job.id for job in found if not is_killing or job.state == "running"]
    waiting = [job.id for job in found if job.id not in running]
    if running:
        _ask(["scancel", *words, *running])
    if waiting:
        _ask(["scancel", *waiting])


def _ask(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except FileNotFoundError:
        raise DeterminedError(f"Slurm is not installed on this machine (no {argv[0]})") from None
    except subprocess.TimeoutExpired:
        raise DeterminedError(f"Slurm does not answer ({argv[0]} took longer than {TIMEOUT_SECONDS:g} s)") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DeterminedError(f"Slurm does not answer: {reason}")
    return done.stdout
