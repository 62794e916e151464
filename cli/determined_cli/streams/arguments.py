"""Arguments of the commands that enter tasks, and the command table of ``det tunnel``."""

from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ("tunnel",)

INPUT = argument("-i", "--stdin", action="store_true", help="pass this command's input to the program")
TERMINAL = argument("-t", "--tty", action="store_true", help="give the program a terminal; with -i, yours")
RANK = argument(
    "--rank", type=int, default=0, metavar="N", help="in the container of this rank (default: 0, the chief)"
)
PORTS = argument("ports", nargs="+", metavar="[LOCAL:]REMOTE", help="port of the task, and of this machine before it")
TASK_ID = argument("task_id", metavar="TASK_ID", help="id, or the first characters of it")

PAGE = (
    argument("port", nargs="?", metavar="PORT", help="port of the task (default: the declared one)"),
    argument("--path", default="/", help="where the page begins (default: /)"),
    argument("--no-browser", action="store_true", help="print the address only"),
)

VERBS = (
    Command(
        "tunnel",
        "another name of `det task port-forward`",
        "determined_cli.task.enter:forward_port",
        (RANK, TASK_ID, PORTS),
        examples=("det tunnel 3f2b 9000:8888",),
    ),
)
