"""Programs with the names of Slurm's, in a folder for ``PATH``: they record their calls and keep a queue in a file.

A submitted script runs at once unless the queue is held. Run as a program, this module is each of them.
"""

import contextlib
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

NAMES = ("sbatch", "squeue", "scancel", "scontrol")
PARTITION = "PartitionName={name} Default={default} MaxTime={limit} State={state} MaxNodes=UNLIMITED TotalNodes=4\n"


class FakeSlurm:
    """A queue that a test reads and changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.write({"jobs": {}, "next": 1, "partitions": [["main", "YES", "UNLIMITED", "UP"]]})
        for name in NAMES:
            program = self.bin / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {__file__} {folder} {name} "$@"\n')
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}"}

    @property
    def jobs(self) -> dict[str, dict[str, str]]:
        jobs: dict[str, dict[str, str]] = self.read()["jobs"]
        return jobs

    def read(self) -> dict:
        return json.loads((self.folder / "queue.json").read_text())

    def write(self, queue: dict) -> None:
        plan = self.folder / "queue.json.new"
        plan.write_text(json.dumps(queue))
        plan.replace(self.folder / "queue.json")

    def set(self, **values: object) -> None:
        """Sets how the programs behave: ``held`` (jobs do not run: True, or the state that they have), ``fails`` (a program's name and its error), ``hangs``
        (a program's name), ``loses`` (number of submissions that are forgotten), ``partitions``."""
        with locked(self.folder):
            self.write(self.read() | values)

    def change(self, job_id: str, **values: str) -> None:
        """Changes columns of a job, by their names."""
        with locked(self.folder):
            queue = self.read()
            queue["jobs"][job_id] |= values
            self.write(queue)

    def add(self, comment: str, **values: str) -> str:
        """Adds a job and returns its id."""
        with locked(self.folder):
            queue = self.read()
            job_id = str(queue["next"])
            queue["next"] += 1
            queue["jobs"][job_id] = {"Comment": comment, "JobName": comment, "State": "RUNNING"} | values
            self.write(queue)
        return job_id

    def remove(self, job_id: str) -> None:
        """Forgets a job, as Slurm does some minutes after its end."""
        with locked(self.folder):
            queue = self.read()
            _end(queue["jobs"].pop(job_id))
            self.write(queue)

    def end_all(self) -> None:
        """Kills the scripts that run."""
        for job in self.jobs.values():
            _end(job)

    def calls(self, name: str = "") -> list[list[str]]:
        """Returns the words of each call so far."""
        file = self.folder / "calls"
        calls = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [call for call in calls if name in ("", call[0])]


@contextlib.contextmanager
def locked(folder: Path):
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(folder: Path, name: str, words: list[str]) -> int:
    slurm = FakeSlurm.__new__(FakeSlurm)
    slurm.folder = folder
    with locked(folder):
        with (folder / "calls").open("a") as file:
            file.write(json.dumps([name, *words]) + "\n")
        queue = slurm.read()
    if name == queue.get("hangs"):
        time.sleep(600)
    if name in queue.get("fails", {}):
        print(f"{name}: error: {queue['fails'][name]}", file=sys.stderr)
        return 1
    with locked(folder):
        queue = slurm.read()
        code = {"sbatch": _sbatch, "squeue": _squeue, "scancel": _scancel, "scontrol": _scontrol}[name](
            folder, queue, words
        )
        slurm.write(queue)
    return code


def _sbatch(folder: Path, queue: dict, words: list[str]) -> int:
    options = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
    job_id = str(queue["next"])
    if queue.get("loses"):
        queue["loses"] -= 1
        print(job_id)
        return 0
    queue["next"] += 1
    job = {"Comment": options["comment"], "JobName": options["job-name"], "State": "PENDING", "Reason": "Resources"}
    if not queue.get("held"):
        (folder / "tmp").mkdir(exist_ok=True)
        environment = os.environ | {"SLURM_JOB_ID": job_id, "SLURM_TMPDIR": str(folder / "tmp")}
        run = 'bash "$0"; echo $? > "$1"'
        with open(options["output"].replace("%%", "%"), "ab") as output:
            process = subprocess.Popen(
                ["sh", "-c", run, words[-1], str(folder / f"exit.{job_id}")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        job |= {"State": "RUNNING", "Reason": "None", "NodeList": "node1", "pid": str(process.pid)}
    elif isinstance(queue["held"], str):
        job["State"] = queue["held"]
    queue["jobs"][job_id] = job
    print(job_id)
    return 0


def _squeue(folder: Path, queue: dict, words: list[str]) -> int:
    columns = next(word.partition("=")[2] for word in words if word.startswith("--Format="))
    widths = [(name, int(width)) for name, _, width in (each.partition(":") for each in columns.split(","))]
    for job_id, job in queue["jobs"].items():
        file = folder / f"exit.{job_id}"
        if job["State"] == "RUNNING" and file.exists() and file.read_text().strip():
            code = int(file.read_text())
            job |= {"State": "FAILED" if code else "COMPLETED", "exit_code": str(code << 8)}
        values = {"JobID": job_id, "TimeLeft": "UNLIMITED", "PreemptTime": "N/A", "exit_code": "0"} | job
        print("".join(values.get(name, "N/A")[:width].ljust(width) for name, width in widths))
    return 0


def _scancel(folder: Path, queue: dict, words: list[str]) -> int:
    name = next((word.partition("=")[2] for word in words if word.startswith("--name=")), None)
    job = queue["jobs"].get(words[-1])
    if job is None or name not in (None, job["JobName"]):
        return 0
    if job["State"] in ("RUNNING", "PENDING"):
        job["State"] = "CANCELLED"
        _end(job)
    return 0


def _end(job: dict[str, str]) -> None:
    if "pid" in job:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(job["pid"]), signal.SIGKILL)


def _scontrol(folder: Path, queue: dict, words: list[str]) -> int:
    for name, default, limit, state in queue["partitions"]:
        print(PARTITION.format(name=name, default=default, limit=limit, state=state), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
