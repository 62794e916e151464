"""Command table of ``det up`` and ``det down``."""

from determined_cli.command import Command, argument

BARE = ("up", "down")

_DATA = argument("--data", metavar="FOLDER", help="data folder (default: $XDG_DATA_HOME/detent)")

VERBS = (
    Command(
        "up",
        "start a master and an agent on this machine",
        "determined_cli.up.local_cluster:run_up",
        (
            argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"),
            argument("--port", type=int, default=8080, help="port to listen on, 0 for any free one (default: 8080)"),
            _DATA,
            argument("--slots", type=int, metavar="N", help="slots of this machine (its accelerators, else 1)"),
            argument("--task-python", metavar="PYTHON", help="the Python that trials build on (default: this one)"),
            argument("--grace", type=float, default=15.0, metavar="SECONDS", help="for trials to save at the end (15)"),
            argument("--detach", action="store_true", help="go to the background once ready"),
            argument("--no-browser", action="store_true", help="only print the link to the page"),
            argument("--quiet-link", action="store_true", help="==SUPPRESS=="),
        ),
        examples=("det up", "det up --port 0 --data /tmp/try --slots 2"),
    ),
    Command(
        "down",
        "end what `det up` started",
        "determined_cli.up.local_cluster:run_down",
        (_DATA, argument("--now", action="store_true", help="at once; trials go on from their last checkpoint")),
        examples=("det down", "det down --now"),
    ),
)
