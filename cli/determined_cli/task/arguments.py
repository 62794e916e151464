"""Command table of ``det task``."""

from determined_cli.command import Command, argument, listing, selecting
from determined_cli.log_arguments import log_arguments
from determined_cli.streams.arguments import INPUT, PAGE, PORTS, RANK, TASK_ID, TERMINAL

NOUNS_WITHOUT_VERBS = ()

VERBS = (
    Command(
        "list",
        "list what runs or waits, of every kind",
        "determined_cli.task.show:list_tasks",
        (selecting, listing),
        ("ls",),
    ),
    Command(
        "logs",
        "print the log of a task",
        "determined_cli.logs:of_task",
        (argument("task_id", metavar="TASK_ID"), log_arguments),
        examples=("det task logs 3f2b7a1c-0d3e-4b55-8f0e-5a5c1d2e3f40 -f",),
    ),
    Command(
        "kill",
        "end at once; `det trial kill` ends a trial",
        "determined_cli.task.show:kill",
        (argument("task_id", nargs="+", metavar="TASK_ID"),),
    ),
    Command(
        "exec",
        "run a program beside a task that runs",
        "determined_cli.task.enter:execute",
        (INPUT, TERMINAL, RANK, TASK_ID),
        examples=("det task exec 3f2b -- nvidia-smi", "det task exec -it 3f2b --rank 1 -- bash"),
        takes_program=True,
    ),
    Command(
        "port-forward",
        "reach a port of a task from this machine",
        "determined_cli.task.enter:forward_port",
        (RANK, TASK_ID, PORTS),
        examples=("det task port-forward 3f2b 8888", "det task port-forward 3f2b 9000:8888"),
    ),
    Command(
        "open",
        "open a page that a task serves in the browser",
        "determined_cli.task.pages:open_page",
        (TASK_ID, *PAGE),
        examples=("det task open 3f2b 8888",),
    ),
)
