"""Graceful shutdown of `det up`: running trials are preempted with a countdown, then stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from determined.client.session import ONCE, Session
from determined.errors import ApiError
from determined_cli.up.supervisor import python
from determined_launch import pid_lock

LOCAL_AGENTS = "local-agents"
"""Folder of the data folder in which the agents of local pools have theirs."""
AGENT_SECONDS = 5.0


def drain(
    session: Session,
    grace: float,
    say: Callable[[str], None],
    hurried: Callable[[], bool],
    pause: Callable[[float], None],
) -> bool:
    """Preempts the running trials. Returns True if all of them exited by themselves. ``hurried`` reports a second
    signal."""
    deadline = time.monotonic() + grace
    said = ""
    try:
        session.post("/detent/drain", {"kill": False}, retry=ONCE, timeout=5)
        while not hurried():
            left = live(session)
            if not left:
                return True
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                break
            text = f"waiting for {', '.join(left)} to save"
            line = f"{text}: {seconds:.0f} s left (Ctrl-C again to stop at once)"
            if text != said:
                say(line)
                said = text
            pause(0.1)
        session.post("/detent/drain", {"kill": True}, retry=ONCE, timeout=5)
        stopping_by = time.monotonic() + 3
        while live(session) and time.monotonic() < stopping_by:
            pause(0.05)
    except ApiError:
        say("the master does not answer; stopping anyway")
        return False
    return False


def end_tasks(folder: Path) -> tuple[int, list[str]]:
    """Ends the agents of local pools and the remaining tasks of the data folder ``folder``, without the master. Returns
    the exit code and the container ids of the tasks that could not be ended."""
    local = sorted((folder / LOCAL_AGENTS).iterdir()) if (folder / LOCAL_AGENTS).is_dir() else []
    for agent in local:
        _end_agent(agent)
    code = 0
    left: list[str] = []
    for agent in (folder / "agent", *local):
        its_code, its_left = _end_tasks_of(agent)
        code, left = code or its_code, [*left, *its_left]
    return code, left


def _end_agent(folder: Path) -> None:
    """Ends the agent that holds a data folder, if one does."""
    lock = folder / "agent.lock"
    pid = pid_lock.holder(lock)
    try:
        descriptor = os.pidfd_open(pid) if pid is not None else None
    except ProcessLookupError:
        return
    if descriptor is None:
        return
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            # Asked again, now that the descriptor is of this process whatever becomes of its pid.
            if pid_lock.holder(lock) != pid:
                return
            signal.pidfd_send_signal(descriptor, number)
            if wait([descriptor], AGENT_SECONDS):
                return
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


def _end_tasks_of(agent: Path) -> tuple[int, list[str]]:
    runs = agent / "runs"
    if not runs.is_dir() or not any(runs.iterdir()):
        return 0, []
    try:
        argv = python("determined_agent.run_folders.end_tasks", "--data", str(agent))
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return 1, []
    return done.returncode, done.stdout.split()


def live(session: Session) -> list[str]:
    """Returns names of the trials that hold slots."""
    answer: dict[str, Any] = session.get("/detent/drain", retry=ONCE, timeout=5)
    return [str(name) for name in answer["live"]]
