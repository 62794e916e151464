"""The sentence about the first process of a role that failed. Pure."""

import signal

from determined_launch.exit_records import OUT_OF_MEMORY, ExitRecord
from determined_launch.role_plan import ProcessPlan

_UNCAUGHT = 1
"""Exit code of a Python program that an exception ends."""


def sentence(planned: ProcessPlan, code: int, record: ExitRecord | None) -> str:
    """Returns role, index, rank, and why the process failed, with the place in the user's code if it is known."""
    return f"role {planned.label} (rank {planned.rank}) failed: {_why(code, record, f'[rank={planned.rank}] ')}"


def _why(code: int, record: ExitRecord | None, prefix: str) -> str:
    how = _how(code)
    if record is None:
        return f"it {how}"
    cause = "out of memory: " if record.cause == OUT_OF_MEMORY else ""
    if record.error and code == _UNCAUGHT:
        return cause + (f"{record.error} ({record.place})" if record.place else record.error)
    text = record.last_stderr.removeprefix(prefix).strip()
    return f"{cause}it {how}; its last line on standard error: {text}" if text else f"{cause}it {how}"


def _how(code: int) -> str:
    try:
        return f"was killed by signal {code - 128} ({signal.Signals(code - 128).name})"
    except ValueError:
        return f"exited with code {code}"
