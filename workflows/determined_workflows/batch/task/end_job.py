"""Ends a job: finds its first failed rank, records it, asks for a requeue if the job has to go on, returns the code."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

MAX_RESTARTS = 50
TIMEOUT_SECONDS = 30
REQUEUE_SECONDS = 120


def first_failure(ends: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Returns the end of the rank that failed first, None if none did. Ranks that were stopped come after others."""
    failed = [end for end in ends if end["code"] != 0]
    return min(failed, key=lambda end: (bool(end["signals"]), end["time"]), default=None)


def read(folder: str) -> list[dict[str, Any]]:
    """Returns the ends of all ranks, and of the workers of torchrun that failed."""
    ends = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "[rw]*-*.json"))):
        with open(path, encoding="utf-8") as file:
            ends.append(json.load(file))
    return ends


def main(words: Sequence[str]) -> int:
    step_code = int(words[0])
    folder = os.environ["DETENT_ENDS"]
    ends = read(folder)
    failed = first_failure(ends)
    code = failed["code"] if failed else step_code
    restarts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
    is_leaving = "--requeue" in words and any("SIGUSR1" in end["signals"] for end in ends) and code != 0
    end = {"code": code, "first_failure": failed, "time": time.time(), "signals": _signals(ends)}
    with open(os.path.join(folder, "job.json.new"), "w", encoding="utf-8") as file:
        json.dump(end, file)
    os.replace(os.path.join(folder, "job.json.new"), os.path.join(folder, "job.json"))
    if is_leaving and restarts < MAX_RESTARTS:
        print(f"det batch: the time limit is near; the job is queued again (restart {restarts + 1})", flush=True)
        if _is_queued_again(os.environ["SLURM_JOB_ID"]):
            # Slurm ends this script now: it does not end by itself at the same moment, with a code of its own.
            time.sleep(REQUEUE_SECONDS)
    if failed:
        reason = f": {failed['failure']}" if failed["failure"] else ""
        print(
            f"det batch: rank {failed['rank']} on {failed['host']} failed first, exit code {code}{reason}", flush=True
        )
    elif code:
        print(f"det batch: srun ended with exit code {code}", flush=True)
    return code


def _is_queued_again(job: str) -> bool:
    try:
        return subprocess.run(["scontrol", "requeue", job], timeout=TIMEOUT_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"det batch: the job could not be queued again: {problem}", flush=True)
        return False


def _signals(ends: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({name for end in ends for name in end["signals"]})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
