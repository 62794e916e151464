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


def has_ended(folder: RunFolder) -> bool:
    """Returns True if there is an exit record. Takes over the one of a shim that ran as the task's own user."""
    if folder.exit.exists():
        return True
    try:
        record = json.loads(read_regular(folder.shim / folder.exit.name, MAX_BYTES, owner=folder.owner))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError):
        record = None
    write_atomic(folder.exit, json.dumps(record if isinstance(record, dict) else {"lost": True}))
    return True


def write_lost(folder: RunFolder, reason: str = "") -> None:
    """Records that the container ended without a record of its shim. Keeps a record that exists."""
    if not folder.exit.exists():
        write_atomic(folder.exit, json.dumps({"format": 1, "lost": True, "reason": reason, "time": time.time()}))


def add_cause(folder: RunFolder, cause: str) -> None:
    """Adds to the record why the task was ended, which only the engine knows."""
    write_atomic(folder.exit, json.dumps({**_read(folder), "cause": cause}))


def read_end(folder: RunFolder) -> RunEnd:
    """Returns how the container ended. A record that cannot be read counts as lost."""
    record = _read(folder)
    if record.get("error"):
        return RunEnd("failed_to_start", message=str(record["error"]))
    if record.get("lost"):
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


def _read(folder: RunFolder) -> dict[str, Any]:
    try:
        record = json.loads(read_regular(folder.exit, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {"lost": True}
    return record if isinstance(record, dict) else {"lost": True}


def _complaint(folder: RunFolder) -> str:
    try:
        log = folder.shim_log if folder.shim_log.exists() else folder.shim / folder.shim_log.name
        last = read_regular(log, MAX_BYTES).decode(errors="replace").strip().splitlines()[-1:]
    except OSError:
        return ""
    return f": {last[0]}" if last else ""
