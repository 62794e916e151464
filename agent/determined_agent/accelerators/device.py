"""One accelerator as its vendor's program describes it at one moment, and how such programs are asked."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

PATIENCE_SECONDS = 10.0
END_SECONDS = 1.0
MAX_CHARACTERS = 16 << 20


@dataclass(frozen=True)
class Device:
    """A GPU, or an instance of one that is partitioned (MIG). None for a figure that the program does not give."""

    uuid: str
    type: Literal["cuda", "rocm"]
    brand: str = ""
    bus: str = ""
    """PCI address, such as ``0000:3b:00.0``."""
    problem: str = ""
    """What the program says of a device that does not work."""
    memory_used_mib: int | None = None
    utilization: int | None = None
    """Percent of the last moment in which it computed."""
    uncorrected_errors: int = 0
    """Uncorrected errors of its memory (ECC) since the driver was loaded."""
    processes: tuple[int, ...] = ()
    """Ids of the processes that compute on it."""


@dataclass(frozen=True)
class ProgramOutput:
    """The output of a program, and why it failed if it did. Both are empty if there is no such program."""

    text: str = ""
    problem: str = ""


Ask = Callable[[Sequence[str], str], ProgramOutput]
_hung: dict[str, subprocess.Popen[str]] = {}
"""Programs that their kill has not ended, by name: a driver that hangs holds its callers in the kernel."""


def ask(argv: Sequence[str], name: str, seconds: float = PATIENCE_SECONDS) -> ProgramOutput:
    """Runs a program and returns what it prints. Blocking; raises nothing. ``name``: that of the program in
    ``ProgramOutput.problem``."""
    if shutil.which(argv[0]) is None:
        return ProgramOutput()
    hung = _hung.get(name)
    if hung is not None and hung.poll() is None:
        return ProgramOutput(
            problem=f"{name} hangs: its process {hung.pid} does not end; the driver may need a restart"
        )
    _hung.pop(name, None)
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as problem:
        return ProgramOutput(problem=f"{name} cannot be run: {problem.strerror}")
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process, name)
        return ProgramOutput(problem=f"{name} did not answer within {seconds:g} s")
    if process.returncode == 0:
        return ProgramOutput(output[:MAX_CHARACTERS])
    said = next((line.strip() for line in f"{output}\n{errors}".splitlines() if line.strip()), "")
    why = f"{name} failed with exit code {process.returncode}" + (f": {said[:300]}" if said else "")
    return ProgramOutput(output[:MAX_CHARACTERS], why)


def _end(process: subprocess.Popen[str], name: str) -> None:
    """Kills a program, and waits only for a moment: one that waits in the kernel ends when that does."""
    process.kill()
    try:
        process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        _hung[name] = process


def number(text: str | None) -> int | None:
    """Returns the number at the beginning of a figure with its unit.

    >>> number("512 MiB"), number("97 %"), number("[N/A]"), number(None)
    (512, 97, None, None)
    """
    first = (text or "").split(maxsplit=1)[:1]
    return int(first[0]) if first and first[0].isdecimal() and len(first[0]) < 16 else None
