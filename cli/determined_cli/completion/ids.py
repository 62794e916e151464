"""``det __complete KIND``: prints ids for the completion scripts, within a tenth of a second and without messages.

It never asks for a password: it uses stored sign-ins only. A child process asks the master and writes a cache; what
arrives too late is there at the next attempt.
"""

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from determined.client import auth_store
from determined.client.session import ONCE, Session
from determined_cli import connection
from determined_launch.atomic_file import write_atomic

DEFAULT_WAIT_SECONDS = 0.05
"""Timeout for the child process; ``DET_COMPLETION_SECONDS`` overrides it. Python needs the rest of 0.1 s to start."""
FRESH_SECONDS = 3.0
MAX_AGE_SECONDS = 600.0
REQUEST_SECONDS = 2.0
POLL_SECONDS = 0.002
MAX_IDS = 50
_PLAIN = re.compile(r"[A-Za-z0-9._@:+=-]+")
"""A name that a shell takes as it is. Others name theirs, and a shell would run what they say."""
MAX_EXPERIMENTS = 3
"""Experiments whose trials and checkpoints are offered."""


def run(words: list[str], options: connection.Options, environ: Mapping[str, str] = os.environ) -> int:
    """Prints one id per line: those that the master has named, now or a short time ago."""
    try:
        url = connection.master_url(options)
        store = auth_store.read()
        user = options.user or auth_store.active_user(store, url)
        token = (auth_store.token(store, url, user) if user else None) or environ.get("DET_USER_TOKEN")
        cache = _cache(f"{url} {user} {words[0]}", environ)
        if _age(cache) > FRESH_SECONDS:
            wait = float(environ.get("DET_COMPLETION_SECONDS") or DEFAULT_WAIT_SECONDS)
            _refresh(cache, KINDS[words[0]], url, token, wait)
        if _age(cache) < MAX_AGE_SECONDS:
            lines = cache.read_text(encoding="utf-8").splitlines()
            sys.stdout.write("".join(f"{line}\n" for line in lines if _PLAIN.fullmatch(line)))
    except Exception:  # a message would damage the command line that the user types
        return 0
    return 0


def _cache(key: str, environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "detent" / f"ids-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _age(cache: Path) -> float:
    try:
        return max(0.0, time.time() - cache.stat().st_mtime)
    except OSError:
        return float("inf")


def _refresh(
    cache: Path, find: Callable[[Session], Iterable[object]], url: str, token: str | None, wait: float
) -> None:
    """Asks the master in a child process, and returns when it has ended or ``wait`` seconds have passed."""
    deadline = time.monotonic() + wait
    child = os.fork()
    if child == 0:
        try:
            _leave_terminal()
            with Session(url, token=token, retry=ONCE, timeout=REQUEST_SECONDS) as session:
                found = [str(each) for each in find(session)]
            cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(cache, "".join(f"{each}\n" for each in found), is_durable=False)
        finally:
            os._exit(0)
    while os.waitpid(child, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _leave_terminal() -> None:
    """Detaches the child from the terminal and from the pipe whose end the shell awaits."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _experiments(session: Session) -> list[int]:
    query = {"limit": MAX_IDS, "orderBy": "ORDER_BY_DESC", "archived": False}
    return [int(each["id"]) for each in session.get("/api/v1/experiments", query)["experiments"]]


def _launched(plural: str) -> Callable[[Session], list[str]]:
    query = {"limit": MAX_IDS, "orderBy": "ORDER_BY_DESC"}
    return lambda session: [str(each["id"]) for each in session.get(f"/api/v1/{plural}", query)[plural]]


def _of_experiments(key: str, name: str) -> Callable[[Session], Iterator[str]]:
    def find(session: Session) -> Iterator[str]:
        for experiment_id in _experiments(session)[:MAX_EXPERIMENTS]:
            answer: dict[str, Any] = session.get(f"/api/v1/experiments/{experiment_id}/{key}", {"limit": MAX_IDS})
            yield from (str(each[name]) for each in answer[key])

    return find


def _named(path: str, key: str, name: str) -> Callable[[Session], list[str]]:
    return lambda session: [str(each[name]) for each in session.get(path)[key]]


KINDS: dict[str, Callable[[Session], Iterable[object]]] = {
    "experiment": _experiments,
    "trial": _of_experiments("trials", "id"),
    "checkpoint": _of_experiments("checkpoints", "uuid"),
    "command": _launched("commands"),
    "shell": _launched("shells"),
    "agent": _named("/api/v1/agents", "agents", "id"),
    "user": _named("/api/v1/users", "users", "username"),
}
