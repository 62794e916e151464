"""Command table of ``det runner``."""

from determined_cli.command import Command, argument

BARE = ()

_RUN = "determined_cli.runner.commands"
_OUTPUT = argument("-o", "--output", default="output", metavar="FOLDER", help="folder of all tasks (default: output)")
_YAML = argument("-y", "--yaml", default="params.yaml", metavar="FILE", help="the grid (default: params.yaml)")


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_at_least_one.__name__ = "count"  # argparse says: invalid count value

VERBS = (
    Command(
        "init",
        "write a params.yaml with comments",
        f"{_RUN}:init",
        (argument("file", nargs="?", default="params.yaml", metavar="FILE"),),
    ),
    Command(
        "run",
        "run a grid of commands; what has finished is skipped",
        f"{_RUN}:run",
        (
            _OUTPUT,
            _YAML,
            argument("-t", "--title", metavar="TITLE", help="only the choices with this _title"),
            argument("-c", "--command", nargs="+", metavar="NAME", help="only these commands of each task"),
            argument("-r", "--resource", nargs="+", metavar="LIST", help="workers: `-r 1,2 3,4` are two with two GPUs"),
            argument("--sample", type=_at_least_one, metavar="N", help="N random tasks of each document of choices"),
            argument("-f", "--force", action="store_true", help="run commands again that have finished"),
            argument("-d", "--debug", action="store_true", help="run the first task, with its output on the terminal"),
            argument("--dry-run", action="store_true", help="print the commands, and run nothing"),
            argument("--no-subdir", action="store_true", help="put the files of all tasks into one folder"),
            argument("-v", "--verbose", action="store_true", help="print successes too"),
            argument("--exit-zero", action="store_true", help="exit with 0 even if tasks fail"),
        ),
        examples=("det runner run", "det runner run -r 0 1 -c test", "det runner run --sample 10 --dry-run"),
    ),
    Command("status", "print the states of the tasks of an output", f"{_RUN}:status", (_OUTPUT,)),
)
