#!/usr/bin/env python3
"""The interpreter of torchrun's workers: runs Python as torchrun would, and records how a rank fails.

torchrun starts ``PYTHON_EXEC`` in place of its own interpreter, and tells nobody which of its workers failed. Needs
Python 3.7 alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType

PR_SET_PDEATHSIG = 1


def interpreter(parent: int) -> str:
    """Returns the Python of torchrun, the parent of its workers."""
    with open(f"/proc/{parent}/cmdline", "rb") as file:
        name = os.fsdecode(file.read().split(b"\0")[0])
    return (name if "/" in name else shutil.which(name)) or sys.executable


def die_with_parent() -> None:
    """Lets the kernel kill this process with its parent, which torchrun may kill."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main(words: list[str]) -> int:
    path = os.path.join(os.environ["DETENT_ENDS"], f"worker-{os.environ.get('RANK', '0')}.json")
    if os.path.exists(path):  # of the attempt before: torchrun starts its workers again
        os.unlink(path)
    signals: list[str] = []
    process: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        signals.append(signal.Signals(number).name)
        if process is not None:
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, forward)
    process = subprocess.Popen([interpreter(os.getppid()), *words], preexec_fn=die_with_parent)
    code = process.wait()
    if code:
        _record(path, code if code > 0 else 128 - code, signals)
    if code < 0:  # torchrun names the signal
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _record(path: str, code: int, signals: list[str]) -> None:
    end = {
        "rank": int(os.environ.get("RANK", "0")),
        "host": os.environ.get("SLURMD_NODENAME") or os.uname().nodename,
        "code": code,
        "failure": "",
        "signals": signals,
        "time": time.time(),
    }
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(end, file)
    os.replace(f"{path}.new", path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
