"""The provider of type ``local``: agents are processes on the machine of the master, with CPU slots.

They live in sessions of their own and outlive the master, so that a restart interrupts no task; the next master finds
them by the locks of their data folders. An agent whose master stays away ends by itself once it runs no task.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeVar

from determined_launch import pid_lock
from determined_master.providers.master_address import MasterAddress
from determined_master.providers.provider import (
    Instance,
    LaunchFailed,
    Observation,
    ObservedState,
    ReleaseFailed,
    how_ended,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

FOLDER = "local-agents"
"""Name of the folder in the master's data folder; each agent has its data folder in it."""
LOG = "agent.log"
END_SECONDS = 10.0
"""Time for an agent to end before it is killed."""
END_TASKS_SECONDS = 60.0
MAX_THREADS = 4
ADOPTION_SECONDS = 20.0
"""Time for an agent that an earlier master has just started to lock its folder."""
PROGRAM = (sys.executable, "-P", "-m", "determined_agent")
WITHOUT_MASTER_SECONDS = 600.0
"""Time without a master after which an agent without tasks ends."""


class LocalProvider:
    def __init__(
        self,
        data: Path,
        address: MasterAddress,
        environment: Mapping[str, str],
        *,
        umask: int = -1,
        program: Sequence[str] = PROGRAM,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``data``: the master's data folder. ``environment``: the variables of the agents, without those of ours.
        ``umask`` is that of the agents, which give it to their tasks; -1 for the master's. ``program``: the command of
        ``det-agent``."""
        self._folder = data / FOLDER
        self._token_file = data / "agent-token"
        self._address = address
        self._environment = {name: value for name, value in environment.items() if not name.startswith("DET_")}
        self._environment["DET_AGENT_END_WITHOUT_MASTER_SECONDS"] = str(WITHOUT_MASTER_SECONDS)
        self._umask = umask
        self._program = program
        # Its own: the ends of many agents must not hold up what else the master does in threads.
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="local-agents")
        self._now = now
        self._adopted_at: float | None = None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        """Agents that this master started."""

    async def want(self, instance: Instance) -> None:
        try:
            await self._in_thread(self._start, instance)
        except OSError as error:
            raise LaunchFailed(f"cannot start an agent on the master's machine: {error}", may_exist=True) from error

    async def release(self, instance: Instance) -> None:
        await self._in_thread(self._end, instance.agent_id)

    async def observe(self, instances: Sequence[Instance]) -> Mapping[str, Observation]:
        if self._adopted_at is None:
            self._adopted_at = self._now()
            await self._end_strays({each.agent_id for each in instances})
        return {each.agent_id: self._observation(each.agent_id) for each in instances}

    def _observation(self, agent_id: str) -> Observation:
        process = self._processes.get(agent_id)
        if process is not None:
            code = process.poll()
            if code is not None:
                return Observation(ObservedState.GONE, self._how(agent_id, code))
        elif self._is_abandoned(agent_id):
            return Observation(ObservedState.GONE, f"its process is gone{self._last_line(agent_id)}")
        return Observation(ObservedState.RUNNING)

    async def _end_strays(self, known: Collection[str]) -> None:
        """Ends the agents of an earlier master that no row names, such as those that started after a backup."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            if path.name not in known:
                try:
                    await self._in_thread(self._end, path.name)
                except ReleaseFailed as error:
                    logger.error("agent %s of an earlier master: %s", path.name, error)

    async def _in_thread(self, work: Callable[[T], None], value: T) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, work, value)

    def _is_abandoned(self, agent_id: str) -> bool:
        """Returns True if the agent of an earlier master has ended. One without a lock file may still be starting."""
        lock = self._lock(agent_id)
        adopted_at = self._adopted_at if self._adopted_at is not None else self._now()
        has_time = not lock.exists() and self._now() - adopted_at < ADOPTION_SECONDS
        return not has_time and pid_lock.holder(lock) is None

    def _lock(self, agent_id: str) -> Path:
        return self._folder / agent_id / "agent.lock"

    def _start(self, instance: Instance) -> None:
        folder = self._folder / instance.agent_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = [*self._program, *self._options(instance), "--data", str(folder)]
        with (folder / LOG).open("ab") as log:
            self._processes[instance.agent_id] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                cwd=folder,
                start_new_session=True,
                umask=self._umask,
            )

    def _options(self, instance: Instance) -> list[str]:
        options = ["--master", self._address.local, "--token-file", str(self._token_file)]
        options += [*self._address.certificate_options, "--id", instance.agent_id, "--pool", instance.pool]
        options += ["--slots", str(instance.settings.slots_per_agent)]
        return options + (["--tasks-as-me"] if instance.settings.tasks_as_me else [])

    def _end(self, agent_id: str) -> None:
        """Ends the agent, then its tasks, and removes its folder. Blocking."""
        folder = self._folder / agent_id
        process = self._processes.get(agent_id)
        pid = process.pid if process is not None else pid_lock.holder(self._lock(agent_id))
        if pid is not None and (process is None or process.poll() is None):
            _end_process(pid, lambda: process is not None or pid_lock.holder(self._lock(agent_id)) == pid)
        if process is not None:
            process.wait()
        runs = folder / "runs"
        if runs.is_dir() and any(runs.iterdir()):
            _end_tasks(folder)
        self._processes.pop(agent_id, None)
        shutil.rmtree(folder, ignore_errors=True)

    def _how(self, agent_id: str, code: int) -> str:
        return f"its process ended ({how_ended(code)}){self._last_line(agent_id)}"

    def _last_line(self, agent_id: str) -> str:
        try:
            lines = (self._folder / agent_id / LOG).read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return f": {lines[-1][:500]}" if lines else ""


def _end_process(pid: int, is_it: Callable[[], bool]) -> None:
    """``is_it`` is asked once the process is pinned: its pid may have gone to another one."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not is_it():
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
            if wait([descriptor], END_SECONDS):
                return
        raise ReleaseFailed(f"the process {pid} of the agent does not end")
    finally:
        os.close(descriptor)


def _end_tasks(folder: Path) -> None:
    argv = [sys.executable, "-P", "-m", "determined_agent.run_folders.end_tasks", "--data", str(folder)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=END_TASKS_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ReleaseFailed(f"its tasks did not end within {END_TASKS_SECONDS:.0f} s") from error
    if done.returncode:
        left = ", ".join(done.stdout.split()) or done.stderr.strip()[-500:]
        raise ReleaseFailed(f"these tasks of it could not be ended: {left}")
