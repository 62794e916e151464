"""``det trial logs``, ``det experiment logs``, ``det command logs`` and ``det task logs``."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from determined.client import commands, ids, tasks, trials
from determined.client.paging import items
from determined.client.session import Session
from determined.errors import NotFound
from determined_cli import connection
from determined_cli.log_arguments import LEVELS
from determined_cli.output import render
from determined_cli.output.states import has_ended
from determined_cli.reconnect import Reconnector, follow_log


def of_trial(args: Namespace) -> None:
    """Prints the log of a trial."""
    _print(connection.connect(args.options), args.trial_id, args)


def of_experiment(args: Namespace) -> None:
    """Prints the log of the experiment's first trial. Raises NotFound if it has no trial."""
    session = connection.connect(args.options)
    trial_id = find_first_trial(session, args.experiment_id)
    if trial_id is None:
        raise NotFound(f"experiment {args.experiment_id} has no trial yet")
    _print(session, trial_id, args)


def find_first_trial(session: Session, experiment_id: int) -> int | None:
    """Returns the lowest trial id, or None if there is no trial."""
    trials = items(session, f"/api/v1/experiments/{experiment_id}/trials", "trials", limit=1)
    return next((int(trial["id"]) for trial in trials), None)


def lines(session: Session, trial_id: int, **query: object) -> Iterator[dict[str, Any]]:
    """Yields a trial's log lines as they arrive."""
    return session.stream(f"/api/v1/trials/{trial_id}/logs", query)


def followed(reconnector: Reconnector, trial_id: int, **query: object) -> Iterator[dict[str, Any]]:
    """Yields a trial's log lines until the trial has ended, also across restarts of the master."""
    session = reconnector.session
    return follow_log(
        reconnector,
        lambda: has_ended(trials.get(session, trial_id)["state"]),
        lambda: lines(session, trial_id, **query),
    )


def print_trial(session: Session, trial_id: int, *, is_following: bool) -> None:
    """Prints the log of a trial; with ``is_following`` until the trial has ended."""
    found = followed(Reconnector(session), trial_id, follow=True) if is_following else lines(session, trial_id)
    for line in found:
        sys.stdout.write(message(line, short=sys.stdout.isatty()))
        if is_following:
            sys.stdout.flush()


def of_command(args: Namespace) -> None:
    """Prints the log of a command or a service."""
    session = connection.connect(args.options)
    _of_task(session, commands.resolve(session, getattr(args, f"{args.kind}_id"), args.kind), args)


def of_task(args: Namespace) -> None:
    """Prints the log of a task of any kind."""
    session = connection.connect(args.options)
    _of_task(session, ids.resolve(session, "task", args.task_id), args)


def _of_task(session: Session, task_id: str, args: Namespace) -> None:
    asked = query(args)
    if args.follow:
        found = followed_task(Reconnector(session), task_id, **asked)
    else:
        found = session.stream(f"/api/v1/tasks/{task_id}/logs", asked)
    _write(found, args)


def followed_task(reconnector: Reconnector, task_id: str, **query: object) -> Iterator[dict[str, Any]]:
    """Yields a task's log lines until the task has ended, also across restarts of the master."""
    session = reconnector.session
    return follow_log(
        reconnector,
        lambda: tasks.has_ended(tasks.get(session, task_id)),
        lambda: session.stream(f"/api/v1/tasks/{task_id}/logs", query),
    )


def followed_command(reconnector: Reconnector, command_id: str, **query: object) -> Iterator[dict[str, Any]]:
    """Yields a command's log lines until the command has ended, also across restarts of the master."""
    session = reconnector.session
    return follow_log(
        reconnector,
        lambda: commands.has_ended(commands.get(session, command_id)),
        lambda: session.stream(f"/api/v1/tasks/{command_id}/logs", query),
    )


def query(args: Namespace) -> dict[str, Any]:
    """Converts the flags to query parameters."""
    limit = args.head if args.head is not None else args.tail
    return {
        "follow": args.follow,
        "limit": limit,
        "orderBy": "ORDER_BY_DESC" if args.tail is not None else None,
        "allocationIds": args.allocation_id,
        "agentIds": args.agent_id,
        "containerIds": args.container_id,
        "rankIds": args.rank_id,
        "sources": args.source,
        "stdtypes": args.stdtype,
        "levels": [f"LOG_LEVEL_{level}" for level in LEVELS[LEVELS.index(args.level) :]] if args.level else None,
        "timestampBefore": args.timestamp_before,
        "timestampAfter": args.timestamp_after,
        "searchText": args.search_text,
    }


MAX_BLOCK_LINES = 500


def first_error(session: Session, trial_id: int) -> list[dict[str, Any]]:
    """Returns the lines of the first error of a trial, with the rest of its traceback; none without an error."""
    path = f"/detent/trials/{trial_id}/logs"
    answer = session.get(f"{path}/first-error")["line"]
    if answer is None:
        return []
    asked: dict[str, Any] = {"after": answer["id"] - 1, "limit": MAX_BLOCK_LINES, "sources": [answer["source"]]}
    if answer["allocationId"]:
        asked["allocationIds"] = [answer["allocationId"]]
    page = session.get(path, asked)
    keys = ("allocationId", "containerId", "rank")
    own = [line for line in page["lines"] if all(line[key] == answer[key] for key in keys)]
    end = next((at for at, line in enumerate(own) if at and not str(line["text"])[:1].isspace()), len(own))
    # The exception follows the indented frames of its traceback.
    return own[: end + 1] if "Traceback (" in str(answer["text"]) else own[:end]


def _print(session: Session, trial_id: int, args: Namespace) -> None:
    if args.first_error:
        found = first_error(session, trial_id)
        texts = [json.dumps(render.snake(line), ensure_ascii=False) if args.json else line["text"] for line in found]
        print("\n".join(texts) if texts or args.json else f"trial {trial_id} has logged no error")
        return
    asked = query(args)
    _write(
        followed(Reconnector(session), trial_id, **asked) if args.follow else lines(session, trial_id, **asked), args
    )


def _write(found: Iterator[dict[str, Any]], args: Namespace) -> None:
    if 0 in (args.head, args.tail):  # the wire protocol takes 0 for "no limit"
        return
    if args.tail is not None:
        found = reversed(list(found))
    is_short = not args.long and sys.stdout.isatty()
    for line in found:
        text = message(line, short=is_short)
        sys.stdout.write(json.dumps(render.snake(line), ensure_ascii=False) + "\n" if args.json else text)
        if args.follow:
            sys.stdout.flush()


def message(line: dict[str, Any], *, short: bool = False) -> str:
    """Returns the formatted line with its line break.

    ``short``: for people at a terminal, with the local time of day, the rank where it is not 0, and the level where it
    is not INFO; without agent and container.

    >>> print(message({"log": "a", "timestamp": "x", "level": "LOG_LEVEL_ERROR", "rankId": 1}, short=True), end="")
    rank=1 ERROR a
    """
    text = str(line.get("message") or "")
    if short:
        level = str(line.get("level") or "").removeprefix("LOG_LEVEL_")
        parts = [
            _time_of_day(str(line.get("timestamp") or "")),
            f"rank={line['rankId']}" if line.get("rankId") else "",
            level if level not in ("INFO", "UNSPECIFIED", "TRACE") else "",
            str(line.get("log") if line.get("log") is not None else text),
        ]
        text = " ".join(part for part in parts[:3] if part)
        text = f"{text} {parts[3]}" if text else parts[3]
    return text if text.endswith("\n") else f"{text}\n"


def _time_of_day(timestamp: str) -> str:
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%H:%M:%S}"
    except ValueError:
        return ""
