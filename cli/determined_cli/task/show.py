"""``det task list`` and ``det task kill``."""

from argparse import Namespace

from determined.client import ids, tasks
from determined_cli import connection
from determined_cli.output import render
from determined_cli.output.row_selection import select
from determined_cli.terminal.messages import say

COLUMNS = (
    ("Task ID", "task_id"),
    ("Name", "name"),
    ("Slots", "slots_needed"),
    ("Resource Pool", "resource_pool"),
    ("Registered", "registered_time"),
    ("Agents", "agents"),
)


def list_tasks(args: Namespace) -> None:
    """Lists the tasks with an attempt that runs or waits for slots, oldest first."""
    session = connection.connect(args.options)
    rows = [
        {**each, "agents": ", ".join(sorted({agent for part in each["resources"] for agent in part["agent_devices"]}))}
        for each in tasks.list_live(session)
    ]
    render.show(args.format, *select(args, COLUMNS, rows))


def kill(args: Namespace) -> None:
    """Kills tasks."""
    session = connection.connect(args.options)
    for task_id in [ids.resolve(session, "task", each) for each in args.task_id]:
        tasks.kill(session, task_id)
        say(f"killed task {task_id}")
