"""Command table of ``det up`` and ``det down``."""

from argparse import SUPPRESS

from determined_cli.command import Command, argument, seconds

NOUNS_WITHOUT_VERBS = ("up", "down")

_DATA = argument("--data", metavar="FOLDER", help="data folder (default: $XDG_DATA_HOME/detent)")

VERBS = (
    Command(
        "up",
        "start a master and an agent on this machine",
        "determined_cli.up.local_cluster:run_up",
        (
            argument("--config", metavar="FILE", help="settings of the master (master.yaml)"),
            argument(
                "--host", help="address to listen on (default: 127.0.0.1); with --pool also a network interface, as ib0"
            ),
            argument("--port", type=int, help="port to listen on, 0 for any free one (default: 8080)"),
            _DATA,
            argument(
                "--pool",
                metavar="slurm[:PARTITION]",
                help="no agent on this machine, which is a login node: agents are jobs of Slurm",
            ),
            argument(
                "--slots",
                type=int,
                metavar="N",
                help="number of slots (default: one per accelerator, else 1), or with --pool of each job (default: 1)",
            ),
            argument("--task-python", metavar="PYTHON", help="Python interpreter for tasks (default: the current one)"),
            argument(
                "--container-runtime",
                choices=("process", "docker", "podman"),
                help="run tasks as processes (default) or in containers of this engine",
            ),
            argument(
                "--grace",
                type=seconds,
                default=15.0,
                metavar="SECONDS",
                help="time for trials to save at shutdown (default: 15)",
            ),
            argument("--detach", action="store_true", help="run in the background once ready"),
            argument("--no-browser", action="store_true", help="print the link to the web page, do not open it"),
            argument("--quiet-link", action="store_true", help=SUPPRESS),
        ),
        examples=("det up", "det up --port 0 --data /tmp/try --slots 2", "det up --pool slurm:gpu --host ib0"),
    ),
    Command(
        "down",
        "stop what `det up` started",
        "determined_cli.up.local_cluster:run_down",
        (_DATA, argument("--now", action="store_true", help="stop at once; trials resume from their last checkpoint")),
        examples=("det down", "det down --now"),
    ),
)
