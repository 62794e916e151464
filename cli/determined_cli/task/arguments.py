"""Command table of ``det task``."""

from determined_cli.command import Command, argument, listing, selecting
from determined_cli.log_arguments import log_arguments

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
)
