"""Reads a container's exit record, and writes it for a container whose shim could not."""

import json
import signal
import time
from typing import Any

from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import RunEnd
from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular

MAX_BYTES = 1 << 20
_CODES = range(256)
_SIGNALS = range(1, signal.NSIG)


def has_ended(folder: RunFolder) -> bool:
    """Returns True if there is an exit record, even one that cannot be read. Writes nothing: the disk may be full."""
    return _find(folder) is not None


def write_lost(folder: RunFolder, reason: str = "") -> None:
    """Records that the container ended without a record of its shim. Keeps a record that exists. Raises OSError."""
    if not folder.exit.exists():
        write_atomic(folder.exit, json.dumps({"format": 1, "lost": True, "reason": reason, "time": time.time()}))


def add_cause(folder: RunFolder, cause: str) -> None:
    """Adds to the record why the task was ended, which only the engine knows. Raises OSError."""
    write_atomic(folder.exit, json.dumps({**_read(folder), "cause": cause}))


def read_end(folder: RunFolder) -> RunEnd:
    """Returns how the container ended. A record that no shim can have written counts as lost: a task may write it."""
    record = _read(folder)
    if record.get("error"):
        return RunEnd("failed_to_start", message=str(record["error"]))
    if record.get("lost") or not _has_status(record):
        if folder.stop.exists():
            return RunEnd("stopped", signal=int(signal.SIGKILL))
        reason = str(record.get("reason") or "the task's shim ended without an exit record")
        return RunEnd("system", message=reason + _complaint(folder))
    # A task that ended by itself before the stop keeps its own end.
    is_stopped = bool(record.get("stopped")) and record.get("signal") is not None
    return RunEnd(
        "stopped" if is_stopped else "exited",
        code=record.get("code"),
        signal=record.get("signal"),
        cause=str(record.get("cause") or ""),
    )


def _has_status(record: dict[str, Any]) -> bool:
    """Returns True if the record has an exit code or a signal, and neither is anything else."""
    code, number = record.get("code"), record.get("signal")
    if code is None and number is None:
        return False
    return all(
        value is None or (type(value) is int and value in possible)  # True is an int too
        for value, possible in ((code, _CODES), (number, _SIGNALS))
    )


def _read(folder: RunFolder) -> dict[str, Any]:
    return _find(folder) or {"lost": True}


def _find(folder: RunFolder) -> dict[str, Any] | None:
    """Returns the record, or the one of a shim that ran as the task's own user; None if there is neither."""
    for path, owner in ((folder.exit, None), (folder.shim / folder.exit.name, folder.owner)):
        try:
            record = json.loads(read_regular(path, MAX_BYTES, owner=owner))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError):
            record = None
        return record if isinstance(record, dict) else {"lost": True}
    return None


def _complaint(folder: RunFolder) -> str:
    try:
        log = folder.shim_log if folder.shim_log.exists() else folder.shim / folder.shim_log.name
        last = read_regular(log, MAX_BYTES).decode(errors="replace").strip().splitlines()[-1:]
    except OSError:
        return ""
    return f": {last[0]}" if last else ""
