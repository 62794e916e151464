"""Removes the processes and mounts of a killed container engine in a test's folder."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from determined_launch import process_table


def end_leftovers(folder: Path) -> None:
    """Kills the engine's helper processes, and unmounts the file systems that keep pytest from removing the folder."""
    for pid in set(process_table.pids()) - {os.getpid()}:
        if any(str(folder).encode() in word for word in process_table.command_line(pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for target in sorted((path for path in mounted if Path(path).is_relative_to(folder)), reverse=True):
        subprocess.run(["umount", target], check=False, capture_output=True)
