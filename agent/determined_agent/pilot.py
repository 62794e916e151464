"""An agent that is a pilot: it runs in a job of Slurm, which ends it, and leaves nothing on the node.

A signal that ends the job reaches the agent and its tasks in any order, so an exit that the signal has caused is never
reported as one of the task: the master learns from Slurm why the job has ended.
"""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from determined.errors import ConfigError, DeterminedError
from determined_agent.drivers.driver import RunEnd
from determined_agent.run_folders.tree_removal import remove_tree
from determined_launch import pid_lock

HOLD_SECONDS = 2.0
"""Time for which a failed exit is held back: Slurm signals the processes of a job one after the other."""
STALE_SECONDS = 600.0
LOOK_SECONDS = 0.1
_OF_JOB = ("SLURM", "SBATCH_", "SRUN_", "PMI", "DET_", "BASH_FUNC_", "detent_")
"""Begin the names of variables that tell a program that it runs in a job of Slurm, or that belong to the script."""
_OF_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")
_DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS")


class ExitHold:
    """Holds back the exits of tasks that the end of the job may have caused."""

    def __init__(self, seconds: float = HOLD_SECONDS) -> None:
        self._seconds = seconds
        self._job_ends = asyncio.Event()
        self.held = 0
        """Number of tasks whose exit is not reported."""

    @property
    def is_job_ending(self) -> bool:
        return self._job_ends.is_set()

    def job_ends(self) -> None:
        """Holds all exits from now on."""
        self._job_ends.set()

    async def wait(self, ended: RunEnd) -> None:
        """Returns when the exit may be reported; never once the job ends."""
        if ended.kind == "exited" and ended.code == 0 and not self._job_ends.is_set():
            return
        self.held += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._job_ends.wait()
            await asyncio.get_running_loop().create_future()
        except TimeoutError:
            pass
        finally:
            self.held -= 1


def task_variables(base: Mapping[str, str], environ: Mapping[str, str], setup: Path | None) -> dict[str, str]:
    """Returns the variables of tasks.

    Parameters:
        base: those that tasks of any agent inherit.
        environ: all of the agent's.
        setup: file with all variables after the set-up lines of the job, each ended by a zero byte.

    Raises ConfigError for a file that cannot be read.
    """
    variables = dict(base)
    if setup is not None:
        try:
            pairs = (each.partition("=") for each in os.fsdecode(setup.read_bytes()).split("\0"))
        except OSError as error:
            raise ConfigError(f"cannot read the variables of the job's set-up, {setup}: {error.strerror}") from error
        after = {name: value for name, equals, value in pairs if equals and _is_of_site(name)}
        variables |= {name: value for name, value in after.items() if environ.get(name) != value}
        for name in variables.keys() & environ.keys() - after.keys():
            if _is_of_site(name):
                del variables[name]
    if environ.get("SLURM_TMPDIR"):
        variables["TMPDIR"] = environ["SLURM_TMPDIR"]
    if environ.get("DET_SLURM_JOB_ID"):
        variables["DET_SLURM_JOB_ID"] = environ["DET_SLURM_JOB_ID"]
    return variables


def device_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with which a job names its devices."""
    return {name: environ[name] for name in _DEVICES if name in environ}


def prepare_folder(data: Path) -> None:
    """Makes the folder above the data folder of a pilot, and removes what killed pilots left in it. Blocking.

    Raises DeterminedError if it belongs to somebody else: it may lie in a folder where everybody can make it.
    """
    above = data.parent
    with contextlib.suppress(FileExistsError):  # of something else than a folder
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = above.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise DeterminedError(
            f"{above} belongs to another user of this node; set node_scratch in SITE.yaml to a folder of your own"
        )
    for folder in above.iterdir():
        lock = folder / "agent.lock"
        try:
            is_old = time.time() - folder.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:  # another pilot has removed it
            continue
        if folder != data and is_old and lock.exists() and pid_lock.holder(lock) is None:
            remove_tree(folder)


def _is_of_site(name: str) -> bool:
    return not name.startswith(_OF_JOB) and name not in _OF_SHELL
