"""``det command list``, ``describe``, ``config``, ``kill`` and ``set priority``."""

from argparse import Namespace
from typing import Any

import yaml

from determined.client import commands, users
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
FIELDS = (
    *COLUMNS,
    ("Ended", "end_time"),
    ("Exit Code", "exit_code"),
    ("Priority", "priority"),
    ("Agent", "agent_id"),
    ("Job ID", "job_id"),
)


def list_commands(args: Namespace) -> None:
    """Lists the user's own commands, or all, newest first."""
    session = connection.connect(args.options)
    query: dict[str, Any] = {"orderBy": "ORDER_BY_DESC"}
    if not args.all:
        query["users"] = [users.me(session)["username"]]
    rows = [_row(each) for each in commands.list_all(session, **query)]
    render.show(args.format, *select(args, COLUMNS, rows))
    say_payers(session, args, rows)


def describe(args: Namespace) -> None:
    """Prints each command; with ``--json`` its configuration too."""
    session = connection.connect(args.options)
    described = [commands.describe(session, commands.resolve(session, each)) for each in args.command_id]
    if args.json:
        configs = [each.pop("config") for each in described]
        whole = [{**_row(each), "config": config} for each, config in zip(described, configs, strict=True)]
        render.show_object("json", whole)
        return
    for number, each in enumerate(described):
        if number:
            print()
        render.show_fields(FIELDS, _row(each))
    say_payers(session, args, map(_row, described))


def config(args: Namespace) -> None:
    """Prints the configuration as YAML, without secrets."""
    session = connection.connect(args.options)
    found = commands.describe(session, commands.resolve(session, args.command_id))["config"]
    print(yaml.safe_dump(found, sort_keys=False, allow_unicode=True), end="")


def kill(args: Namespace) -> None:
    """Kills commands."""
    session = connection.connect(args.options)
    for each in args.command_id:
        command_id = commands.resolve(session, each)
        commands.kill(session, command_id)
        say(f"killed command {command_id}")


def set_priority(args: Namespace) -> None:
    """Changes the place of a command in the queue."""
    session = connection.connect(args.options)
    command_id = commands.resolve(session, args.command_id)
    commands.set_priority(session, command_id, args.priority)
    say(f"set the priority of command {command_id} to {args.priority}")


def _row(command: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = render.snake(command)
    return {**row, "state": without_prefix(row["state"]), "agent_id": (row.get("container") or {}).get("parent")}
