"""``det __complete KIND``: prints ids for the completion scripts, within a tenth of a second and without messages.

It never asks for a password: it uses stored sign-ins only.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from determined.client.session import ONCE, Session
from determined_cli import auth_store, connection

DEFAULT_LIMIT_SECONDS = 0.06
"""Time for the requests; ``DET_COMPLETION_SECONDS`` changes it. Python needs the rest of 0.1 s to start."""
MAX_IDS = 50
MAX_EXPERIMENTS = 3
"""Experiments whose trials and checkpoints are offered."""


def run(words: list[str], options: connection.Options) -> int:
    """Prints one id per line: those that the master has named within the time limit."""
    found: list[str] = []
    try:
        seconds = float(os.environ.get("DET_COMPLETION_SECONDS") or DEFAULT_LIMIT_SECONDS)
        signal.signal(signal.SIGALRM, _expire)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with _session(options, seconds) as session:
            for each in KINDS[words[0]](session):
                found.append(str(each))
    except Exception:  # a message would damage the command line that the user types
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write("".join(f"{each}\n" for each in found))
    return 0


def _expire(*_: object) -> None:
    raise TimeoutError


def _session(options: connection.Options, seconds: float) -> Session:
    url = connection.master_url(options)
    store = auth_store.read()
    user = options.user or auth_store.active_user(store, url)
    token = (auth_store.token(store, url, user) if user else None) or os.environ.get("DET_USER_TOKEN")
    return Session(url, token=token, retry=ONCE, timeout=seconds)


def _experiments(session: Session) -> list[int]:
    query = {"limit": MAX_IDS, "orderBy": "ORDER_BY_DESC", "archived": False}
    return [int(each["id"]) for each in session.get("/api/v1/experiments", query)["experiments"]]


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
    "agent": _named("/api/v1/agents", "agents", "id"),
    "user": _named("/api/v1/users", "users", "username"),
}
