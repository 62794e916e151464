"""``det shell start`` and ``det shell open``."""

import time
from argparse import Namespace
from typing import Any

from determined.client import commands, jobs, submissions, tasks
from determined.client.session import Session
from determined.errors import BadRequest, Conflict, NotImplementedYet
from determined_cli import connection
from determined_cli.command_noun.run import configuration, context
from determined_cli.reconnect import Reconnector
from determined_cli.streams import execution, local_terminal
from determined_cli.terminal.messages import INTERRUPTED, say

POLL_SECONDS = 0.5
_PHASES = {"PULLING": "its image is pulled", "STARTING": "its container starts", "RUNNING": "its startup hooks run"}


def start(args: Namespace) -> int:
    """Starts a shell and opens it. Returns the exit code of what was run in it, or 0 with ``--detach``."""
    if args.template:
        raise NotImplementedYet("templates are not supported yet; remove --template")
    if not args.detach and not local_terminal.has_terminal():
        raise BadRequest("a shell needs a terminal; --detach starts one without opening it and prints its id")
    body, packed = {"config": configuration(args)}, context(args)
    session = connection.connect(args.options)
    answer = submissions.create(session, body, packed, path=submissions.SHELLS)
    shell = answer["shell"]
    for note in answer.get("notes", ()):
        say(f"warning: {note}")
    if args.detach:
        print(shell["id"])
        return 0
    say(f"Started shell {shell['id']} ({shell['description']})")
    return _enter(session, str(shell["id"]))


def open_shell(args: Namespace) -> int:
    """Opens a shell that runs, or waits until it does. Returns the exit code of what was run in it."""
    if not local_terminal.has_terminal():
        raise BadRequest("a shell needs a terminal; `det task exec SHELL_ID -- PROGRAM` runs a program without one")
    session = connection.connect(args.options)
    return _enter(session, commands.resolve(session, args.shell_id, "shell"))


def _enter(session: Session, shell_id: str) -> int:
    try:
        _wait_until_ready(session, shell_id)
    except KeyboardInterrupt:
        say(f"shell {shell_id} is still being started. To open it: det shell open {shell_id}")
        say(f"To stop it: det shell kill {shell_id}")
        return INTERRUPTED
    code = execution.run_in_task(session, shell_id, [], has_input=True, has_terminal=True)
    now = commands.get(session, shell_id, "shell")
    if not commands.has_ended(now):
        say(f"shell {shell_id} keeps running{_limit(now)}. To open it again: det shell open {shell_id}")
        say(f"To stop it: det shell kill {shell_id}")
    return code


def _limit(shell: dict[str, Any]) -> str:
    """Returns how long a shell keeps running."""
    from determined_cli.why import duration

    timeout = shell.get("idleTimeout")
    return f" until nobody was connected for {duration(timeout)}" if timeout else ""


def _wait_until_ready(session: Session, shell_id: str) -> None:
    """Waits until a shell can be entered, and says why it waits. Raises Conflict if it has ended."""
    reconnector, said = Reconnector(session), ""
    while True:
        task = reconnector.call(lambda: tasks.get(session, shell_id))
        if tasks.has_ended(task):
            ended = commands.get(session, shell_id, "shell")
            how = ended.get("exitStatus") or "unknown"
            raise Conflict(f"shell {shell_id} has ended: {how}; `det shell logs {shell_id}` prints its log")
        if task["allocations"] and task["allocations"][0]["isReady"]:
            return
        reason = reconnector.call(lambda: _reason(session, shell_id))
        if reason and reason != said:
            say(f"shell {shell_id} waits: {reason}")
            said = reason
        time.sleep(POLL_SECONDS)


def _reason(session: Session, shell_id: str) -> str:
    """Returns why a shell is not ready yet; empty if that is not known."""
    first = jobs.why(session, shell_id)["first"]
    if first is not None:
        return str(first["reason"])
    state = str(commands.get(session, shell_id, "shell")["state"]).removeprefix("STATE_")
    return _PHASES.get(state, "")
