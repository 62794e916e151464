"""Runs the clients of Slurm: each with its own timeout, plain columns, and one sentence if it does not answer."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from determined.errors import ConfigError, DeterminedError
from determined_workflows.batch import sbatch_options

TIMEOUT_SECONDS = 10.0
MAX_OUTPUT_BYTES = 8 << 20
COMMENT_PREFIX = "detent:"
_COLUMNS = ("%i", "%F", "%K", "%T", "%r", "%N", "%k", "%S")


class SlurmError(DeterminedError):
    """Slurm did not do what it was asked for."""


class NoAnswer(SlurmError):
    """Slurm does not answer."""


@dataclass(frozen=True)
class QueuedJob:
    """One line of ``squeue``: a job, an element of an array, or the elements of an array that still wait."""

    id: str
    array_id: str
    elements: str
    state: str
    reason: str
    nodes: str
    comment: str
    start: str

    @property
    def nonce(self) -> str | None:
        """The submission that the job belongs to, None for a job that is not ours."""
        return self.comment.removeprefix(COMMENT_PREFIX) if self.comment.startswith(COMMENT_PREFIX) else None


def is_here() -> bool:
    """Returns True on a machine that can submit to Slurm."""
    return shutil.which("sbatch") is not None


def require() -> None:
    """Raises ConfigError without ``sbatch``: nobody is to train on a login node by accident."""
    if not is_here():
        raise ConfigError(
            "there is no sbatch on this machine, so it is no login node of Slurm; `--on local` runs the job here, "
            "`--on det` on a cluster"
        )


def submit(argv: Sequence[str]) -> str:
    """Submits a job and returns its id. ``argv``: options and the script."""
    environ = sbatch_options.without_refused(os.environ)
    answer = _run(["sbatch", "--parsable", *argv], doing="sbatch", environ=environ)
    return answer.strip().splitlines()[-1].split(";")[0] if answer.strip() else ""


def queue(*, user: str | None = None) -> list[QueuedJob]:
    """Returns the jobs of this user that Slurm knows, also those that have ended lately."""
    name = user or str(os.getuid())
    columns = "|".join(_COLUMNS)
    text = _run(["squeue", "--noheader", f"--user={name}", "--states=all", f"--format={columns}"], doing="squeue")
    return parse_queue(text)


def parse_queue(text: str) -> list[QueuedJob]:
    """Returns the jobs of the output of ``squeue``; lines in another form are left out."""
    rows = (line.strip().split("|") for line in text.splitlines())
    return [QueuedJob(*row) for row in rows if len(row) == len(_COLUMNS)]


def partitions() -> str:
    """Returns what ``scontrol`` knows about the partitions, one a line."""
    return _run(["scontrol", "--oneliner", "--all", "show", "partition"], doing="scontrol")


def configuration() -> Mapping[str, str]:
    """Returns the settings of Slurm by their names."""
    lines = _run(["scontrol", "show", "config"], doing="scontrol").splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def cancel(job: str, name: str) -> None:
    """Cancels a job. ``name``: of the job, so that another one with the same id is left alone."""
    _run(["scancel", f"--jobname={name}", job], doing="scancel")


def _run(argv: Sequence[str], *, doing: str, environ: Mapping[str, str] | None = None) -> str:
    require()
    try:
        done = subprocess.run(
            argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(
            f"Slurm does not answer: {doing} took longer than {TIMEOUT_SECONDS:g} s; is slurmctld up? `scontrol ping` "
            "says so"
        ) from None
    output = done.stdout[:MAX_OUTPUT_BYTES].decode(errors="replace")
    if done.returncode == 0:
        return output
    words = done.stderr.decode(errors="replace").strip().splitlines()
    reason = "; ".join(dict.fromkeys(line.partition("error: ")[2] or line for line in words[-5:])) or "no reason given"
    if "Unable to contact slurm controller" in reason or "Connection refused" in reason:
        raise NoAnswer(f"Slurm does not answer: {reason}")
    raise SlurmError(f"{doing}: {reason}")
