"""Graceful shutdown of `det up`: running trials are preempted with a countdown, then stopped."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from determined.client.session import ONCE, Session
from determined.errors import ApiError
from determined_cli.up.supervisor import python


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
    """Ends the remaining tasks of the data folder ``folder``, without master and agent. Returns the exit code and the
    container ids of the tasks that could not be ended."""
    agent = folder / "agent"
    runs = agent / "runs"
    if not runs.is_dir() or not any(runs.iterdir()):
        return 0, []
    try:
        argv = python("determined_agent.end_tasks", "--data", str(agent))
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return 1, []
    return done.returncode, done.stdout.split()


def live(session: Session) -> list[str]:
    """Returns names of the trials that hold slots."""
    answer: dict[str, Any] = session.get("/detent/drain", retry=ONCE, timeout=5)
    return [str(name) for name in answer["live"]]
