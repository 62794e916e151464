"""Runs the command of a job inside a task of the cluster, with the variables that it has on Slurm.

It is copied into the context beside ``job.json`` and the programs that unpack data.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from determined_launch import environment, rendezvous
from determined_launch.environment import RendezvousFacts

JOB = "job.json"
RUN_OF_TRIAL = ("WANDB_RUN_ID", "WANDB_RESUME")
"""Variables of every trial; the agent of a sweep gives each run an id of its own."""
ENDING = 2


def main() -> int:
    """Replaces this process by the command, unless data has to be removed after it."""
    folder = Path(__file__).resolve().parent
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    # An agent may run in an allocation of Slurm, which is not that of the program.
    environ = {name: value for name, value in environment.current().items() if not name.startswith("SLURM_")}
    facts = rendezvous.read(environ)
    problem = unequal(job, facts)
    if problem:
        return _refuse(problem)
    own = variables(job, facts, environ, str(folder.parent))
    sys.path.insert(0, str(folder))
    import wandb_key  # type: ignore[import-not-found]  # it lies beside this file

    key = wandb_key.find(environ)
    environ.update(own, **({"WANDB_API_KEY": key} if key else {}))
    for name in RUN_OF_TRIAL if job["is_agent"] else ():
        environ.pop(name, None)
    os.chdir(folder.parent / job["workdir"])
    command = " ".join(filter(None, [job["command"], arguments(job, environ), job["behind"]]))
    print(f"COMMANDS GIVEN: {command}", flush=True)
    argv = ["bash", "-c", command, "command"]
    if not job["data"]:
        os.makedirs(own["SLURM_TMPDIR"], exist_ok=True)
        os.execvpe(argv[0], argv, environ)
    return _run_with_data(job["data"], argv, environ, folder)


def unequal(job: Mapping[str, Any], facts: RendezvousFacts) -> str:
    """Returns the problem of machines with different numbers of slots: a program is told one number for all."""
    if not job["is_distributed"] or len(set(facts.slots)) <= 1:
        return ""
    return (
        f"the machines of this allocation have {', '.join(map(str, facts.slots))} slots, and NUM_TRAINERS is one "
        "number for all; choose --gpus and --nodes so that each machine gives the same, or another pool by --partition"
    )


def variables(
    job: Mapping[str, Any], facts: RendezvousFacts, environ: Mapping[str, str], folder: str
) -> dict[str, str]:
    """Returns what the program sees; nodes and GPUs are those of the allocation.

    ``folder``: of the project in this task.
    """
    values = {
        **job["environment"],
        **job["variables"],
        "source_dir": folder,
        "scratch_dir": scratch(job["variables"]["scratch_dir"], folder),
        "NNODES": str(facts.nodes),
        "NUM_TRAINERS": str(max(1, facts.local_slots)),
        "JOBID": environ.get(environment.TRIAL_ID, environ.get(environment.TASK_ID, "")),
        "SLURM_TMPDIR": os.path.join(folder, ".det_batch", "disk", "node"),
        "PYTHONUNBUFFERED": "1",
    }
    if job["is_distributed"]:
        port = environ.get(environment.C10D_PORT, "")
        values.update(MASTER_ADDR=facts.chief, MASTER_ADDRESS=facts.chief, MASTER_PORT=port, PORT=port)
        values.update(WORLD_SIZE=str(facts.nodes), NODE_RANK=str(facts.rank))
    return values


def scratch(wanted: str, folder: str) -> str:
    """Returns the project's folder on the scratch disk if this machine has it, else a folder of the task."""
    if os.path.isdir(wanted) and os.access(wanted, os.W_OK):
        return wanted
    own = os.path.join(folder, ".det_batch", "scratch")
    os.makedirs(own, exist_ok=True)
    print(f"det batch: {wanted} is not on this machine; scratch_dir is a folder of the task: {own}", flush=True)
    return own


def arguments(job: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Returns the arguments that a search adds to the command: the hyperparameters of this trial."""
    form = job["arguments"]
    if not form:
        return ""
    values = json.loads(environment.value_of(environ, environment.HPARAMS))
    words = []
    for name in job["parameters"]:
        value = values[name]
        if form == "flags" and isinstance(value, bool):
            words += [f"--{name}"] * value
        else:
            words.append(f"{name}={value}" if form == "bare" else f"--{name}={value}")
    return " ".join(map(shlex.quote, words))


def _run_with_data(data: Mapping[str, Any], argv: Sequence[str], environ: dict[str, str], folder: Path) -> int:
    import node_data  # type: ignore[import-not-found]

    if not os.path.isfile(data["archive"]):
        return _refuse(
            f"the data {', '.join(data['paths'])} was packed to {data['archive']}, which is not on the machine of "
            f"agent {environ.get(environment.AGENT_ID, '')}: SCRATCH has to be a disk that agents share; small data "
            "can travel in the project's folder instead"
        )
    target = environ["SLURM_TMPDIR"]
    unpacked = node_data.NodeData(target, True, data["archive"], data["digest"], data["paths"])
    try:
        unpacked.enter()
    except node_data.DataError as error:
        return _refuse(str(error))
    process = subprocess.Popen(argv, env=environ)

    def forward(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    code = process.wait()
    unpacked.leave()
    return code if code >= 0 else 128 - code


def _refuse(problem: str) -> int:
    print(f"det batch: {problem}", file=sys.stderr, flush=True)
    return ENDING


if __name__ == "__main__":
    sys.exit(main())
