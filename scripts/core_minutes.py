"""``python scripts/core_minutes.py NAME COMMAND…``: runs a command, then prints its wall and core minutes.

Core minutes are the busy time of all cores of the machine (user and system, from ``/proc/stat``), because the time of a
test's daemons and tasks is no child time of any shell. Other work on the machine counts too.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq


def main(name: str, command: Sequence[str]) -> int:
    before, began = busy_seconds(), time.monotonic()
    code = subprocess.run(command, check=False).returncode
    wall, busy = time.monotonic() - began, busy_seconds() - before
    print(f"{name}: {busy / 60:.1f} core minutes, {wall / 60:.1f} minutes", flush=True)
    return code


def busy_seconds() -> float:
    """Returns the seconds since the machine's start in which a core worked, summed over the cores; 0 without /proc."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    return sum(int(fields[place]) for place in _BUSY) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
