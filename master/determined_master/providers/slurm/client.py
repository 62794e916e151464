"""Runs the clients of Slurm beside the event loop, each with a time-out of its own."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from determined_master.providers.slurm.queue import FORMAT

TIMEOUT_SECONDS = 10.0
"""slurmctld's own time-out is 20 s and more, in which each client hangs."""
MAX_CHANGES = 8
"""Number of submissions and cancellations at a time: slurmctld serves all users of its cluster."""
_AWAY = ("Unable to contact slurm controller", "Connection refused", "Connection timed out", "communication failure")
_OF_SLURM = ("SBATCH_", "SQUEUE_", "SCANCEL_", "SLURM_", "SLURMD_", "SRUN_", "PMI", "DET_")
"""Variables that change what the clients do, or that tell a program that it runs in a job, and our own secrets."""
_OF_MACHINE = ("TMPDIR", "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Variables that are true on the master's machine alone."""


class SlurmError(Exception):
    """Slurm did not do what it was asked for. The text is shown to people."""


class NoAnswer(SlurmError):
    """Slurm does not answer, or not in time; what it was asked for may be done all the same."""


class SlurmClient:
    def __init__(self, environment: Mapping[str, str], *, timeout: float = TIMEOUT_SECONDS) -> None:
        """``environment``: that of the master, which pilots get without the variables of Detent and Slurm."""
        self._environment = {
            name: value
            for name, value in environment.items()
            if name == "SLURM_CONF" or not (name.startswith(_OF_SLURM) or name in _OF_MACHINE)
        }
        # Columns with times are local times.
        self._plain = self._environment | {"TZ": "UTC", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
        self.timeout = timeout
        self._threads = ThreadPoolExecutor(MAX_CHANGES + 2, thread_name_prefix="slurm")
        self._changes = asyncio.Semaphore(MAX_CHANGES)

    async def submit(self, options: Sequence[str], script: Path) -> str:
        """Submits a job and returns its id."""
        words = ["sbatch", "--parsable", "--no-requeue", *options, str(script)]
        async with self._changes:
            answer = (await self._run(words, self._environment)).decode(errors="replace").split()
        if not answer:
            raise SlurmError("sbatch printed no job id")
        return answer[-1].split(";")[0]

    async def queue(self) -> bytes:
        """Returns the jobs of this account, also those that have ended in the last minutes."""
        words = ["squeue", "--noheader", f"--user={os.getuid()}", "--states=all", f"--Format={FORMAT}"]
        return await self._run(words, self._plain)

    async def cancel(self, job_id: str, name: str) -> None:
        """Cancels a job if it has this name: its id may have gone to somebody else's job."""
        async with self._changes:
            await self._run(["scancel", f"--name={name}", job_id], self._plain)

    async def partitions(self) -> str:
        """Returns the partitions, one a line."""
        words = ["scontrol", "--oneliner", "--all", "show", "partition"]
        return (await self._run(words, self._plain)).decode(errors="replace")

    async def _run(self, words: Sequence[str], environment: Mapping[str, str]) -> bytes:
        call = _Call(words, environment)
        ending = asyncio.get_running_loop().run_in_executor(self._threads, call.run)
        try:
            async with asyncio.timeout(self.timeout):
                code, output, errors = await asyncio.shield(ending)
        except TimeoutError:
            raise NoAnswer(f"Slurm does not answer: {words[0]} took longer than {self.timeout:g} s") from None
        except FileNotFoundError:
            raise SlurmError(f"there is no {words[0]} on the master's machine, so it cannot submit to Slurm") from None
        except OSError as error:
            raise SlurmError(f"cannot run {words[0]}: {error.strerror}") from error
        finally:
            call.kill()
        if code == 0:
            return output
        raise _failure(words[0], errors.decode(errors="replace"))


class _Call:
    """One run of a program in a thread. The event loop's own start of a process would copy the master's memory map."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._words = words
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(self) -> tuple[int, bytes, bytes]:
        """Returns exit code, output and error output. Blocking."""
        with self._lock:
            if self._is_over:
                return -signal.SIGKILL, b"", b""
            process = self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self._environment),
                cwd="/",
                start_new_session=True,
            )
        output, errors = process.communicate()
        with self._lock:
            self._process = None
        return process.returncode, output, errors

    def kill(self) -> None:
        """Ends the program with all that it started, if it runs, or keeps it from starting."""
        with self._lock:
            self._is_over = True
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)


def _failure(program: str, errors: str) -> SlurmError:
    lines = [line.partition("error: ")[2] or line for line in errors.strip().splitlines()[-5:]]
    text = "; ".join(dict.fromkeys(line.strip()[:300] for line in lines)) or "no reason given"
    if any(words in text for words in _AWAY):
        return NoAnswer(f"Slurm does not answer: {text}")
    return SlurmError(f"{program}: {text}")
