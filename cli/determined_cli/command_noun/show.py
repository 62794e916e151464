"""``list``, ``describe``, ``config``, ``kill`` and ``set priority`` of ``det command`` and ``det shell``."""

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import yaml

from determined.client import commands, users
from determined.client.session import Session
from determined_cli import connection
from determined_cli.output import render
from determined_cli.output.row_selection import select
from determined_cli.output.states import without_prefix
from determined_cli.pool_accounts import say_payers
from determined_cli.terminal.messages import say

COLUMNS = (
    ("ID", "id"),
    ("Description", "description"),
    ("Owner", "username"),
    ("State", "state"),
    ("Slots", "slots"),
    ("Started", "start_time"),
    ("Exit Status", "exit_status"),
    ("Resource Pool", "resource_pool"),
)
SHELL_COLUMNS = (*COLUMNS[:6], ("Idle Since", "idle_since"), *COLUMNS[6:])
FIELDS = (
    ("Ended", "end_time"),
    ("Exit Code", "exit_code"),
    ("Priority", "priority"),
    ("Agent", "agent_id"),
    ("Job ID", "job_id"),
)
_OF_KIND = {
    "command": (COLUMNS, (*COLUMNS, *FIELDS)),
    "shell": (SHELL_COLUMNS, (*SHELL_COLUMNS, ("Idle Timeout", "idle_timeout"), *FIELDS)),
}
"""Columns of the list and of the description."""


def list_tasks(args: Namespace) -> None:
    """Lists the user's own commands, or all, newest first."""
    session = connection.connect(args.options)
    query: dict[str, Any] = {"orderBy": "ORDER_BY_DESC"}
    if not args.all:
        query["users"] = [users.me(session)["username"]]
    rows = [_row(each) for each in commands.list_all(session, args.kind, **query)]
    render.show(args.format, *select(args, _OF_KIND[args.kind][0], rows))
    say_payers(session, args, rows)


def describe(args: Namespace) -> None:
    """Prints each task; with ``--json`` its configuration too."""
    session = connection.connect(args.options)
    described = [commands.describe(session, each, args.kind) for each in _ids(session, args)]
    if args.json:
        configs = [each.pop("config") for each in described]
        whole = [{**_row(each), "config": config} for each, config in zip(described, configs, strict=True)]
        render.show_object("json", whole)
        return
    for number, each in enumerate(described):
        if number:
            print()
        render.show_fields(_OF_KIND[args.kind][1], _row(each))
    say_payers(session, args, map(_row, described))


def config(args: Namespace) -> None:
    """Prints the configuration as YAML, without secrets."""
    session = connection.connect(args.options)
    (task_id,) = _ids(session, args)
    found = commands.describe(session, task_id, args.kind)["config"]
    print(yaml.safe_dump(found, sort_keys=False, allow_unicode=True), end="")


def kill(args: Namespace) -> None:
    """Kills tasks of a kind."""
    session = connection.connect(args.options)
    for task_id in _ids(session, args):
        commands.kill(session, task_id, args.kind)
        say(f"killed {args.kind} {task_id}")


def set_priority(args: Namespace) -> None:
    """Changes the place of a task in the queue."""
    session = connection.connect(args.options)
    (task_id,) = _ids(session, args)
    commands.set_priority(session, task_id, args.priority, args.kind)
    say(f"set the priority of {args.kind} {task_id} to {args.priority}")


def _ids(session: Session, args: Namespace) -> Iterator[str]:
    """Yields the whole ids."""
    given = getattr(args, f"{args.kind}_id")
    for each in given if isinstance(given, list) else [given]:
        yield commands.resolve(session, each, args.kind)


def _row(task: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = render.snake(task)
    agent_id = (row.get("container") or {}).get("parent")
    return {**row, "state": without_prefix(row["state"]), "agent_id": agent_id}
