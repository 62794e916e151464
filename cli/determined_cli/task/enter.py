"""``det task exec``, ``det task port-forward``, ``det trial exec`` and ``det trial shell``."""

from argparse import Namespace

from determined.client import ids, trials
from determined.client.session import Session
from determined.errors import BadRequest
from determined_cli import connection
from determined_cli.streams import execution, local_terminal, port_forward
from determined_cli.terminal.messages import say


def execute(args: Namespace) -> int:
    """Runs a program beside a task; returns its exit code."""
    session = connection.connect(args.options)
    return _execute(args, session, ids.resolve(session, "task", args.task_id))


def execute_in_trial(args: Namespace) -> int:
    """The same beside a trial."""
    session = connection.connect(args.options)
    return _execute(args, session, _task_of_trial(session, args.trial_id))


def open_shell(args: Namespace) -> int:
    """Opens a shell beside a trial; returns its exit code."""
    if not local_terminal.has_terminal():
        raise BadRequest("a shell needs a terminal; `det trial exec TRIAL_ID -- PROGRAM` runs a program without one")
    session = connection.connect(args.options)
    task_id = _task_of_trial(session, args.trial_id)
    return execution.run_in_task(session, task_id, [], rank=args.rank, has_input=True, has_terminal=True)


def forward_port(args: Namespace) -> None:
    """Forwards ports until Ctrl-C."""
    ports = [port_forward.ports_of(text) for text in args.ports]
    session = connection.connect(args.options)
    port_forward.forward(session, ids.resolve(session, "task", args.task_id), ports, rank=args.rank)


def forward_port_of_trial(args: Namespace) -> None:
    """The same for a trial."""
    ports = [port_forward.ports_of(text) for text in args.ports]
    session = connection.connect(args.options)
    port_forward.forward(session, _task_of_trial(session, args.trial_id), ports, rank=args.rank)


def _task_of_trial(session: Session, trial_id: int) -> str:
    return str(trials.get(session, trial_id)["taskId"])


def _execute(args: Namespace, session: Session, task_id: str) -> int:
    has_terminal = args.tty and local_terminal.has_terminal()
    if args.tty and not has_terminal:
        say("det: this command's input or output is no terminal; the program gets none")
    if not args.program and not has_terminal:
        raise BadRequest("no program: put it behind --, such as `det task exec TASK_ID -- nvidia-smi`")
    return execution.run_in_task(
        session, task_id, args.program, rank=args.rank, has_input=args.stdin, has_terminal=has_terminal
    )
