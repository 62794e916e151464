"""Command table of ``det rlhf``."""

from determined_cli.command import Command, argument
from determined_cli.workflow_verbs import DRY_RUN, FOLLOW, Targets, complete

NOUNS_WITHOUT_VERBS = ()

_START, _RUNS = "determined_cli.rlhf.start", "determined_cli.rlhf.runs"
_TARGETS = Targets(default={"run": "local", "retry": None})
_EXPERIMENT = argument("experiment", metavar="EXPERIMENT", help="name by which the project registers it")
_TRIAL = argument("trial", nargs="?", default=None, metavar="TRIAL", help='any name without "_" (default: test-USER)')
_PROJECT = argument("--project", default=".", metavar="FOLDER", help="folder of the project (default: working folder)")
_CHOSEN = (_EXPERIMENT, _TRIAL, _PROJECT)
_STARTED = (
    argument("--partition", metavar="NAME", help="with --on slurm, the pool or the partition"),
    argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with a cluster, a setting of the experiment: resources.resource_pool=gpus (repeatable)",
    ),
    argument("--image", metavar="IMAGE", help="with a cluster, the image or venv:PATH of the tasks"),
    argument("--retries", type=int, default=0, metavar="N", help="with a cluster, restarts after a failure (0)"),
    argument("--wandb-mode", choices=("online", "offline", "disabled"), default="disabled", help="WANDB_MODE"),
    argument(
        "--log-level",
        choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        default="INFO",
        type=str.upper,
        help="of the workers' own lines (default: INFO)",
    ),
    argument("--follow", action="store_true", help="with a cluster, follow the log of the trial"),
    argument("--paused", action="store_true", help="with a cluster, create it paused"),
    DRY_RUN,
)

_COMMANDS = (
    Command(
        "init",
        "write a small project with a registered experiment",
        f"{_RUNS}:init",
        (argument("folder", nargs="?", default=".", metavar="FOLDER", help="where (default: the working folder)"),),
        examples=("det rlhf init", "det rlhf init line"),
    ),
    Command(
        "check",
        "build an experiment and print its workers; start nothing",
        f"{_START}:check",
        (
            argument("experiment", nargs="?", default=None, metavar="EXPERIMENT", help="default: all of them"),
            _TRIAL,
            _PROJECT,
            argument("--json", action="store_true", help="print JSON"),
        ),
        examples=("det rlhf check", "det rlhf check line", "det rlhf check line --json"),
    ),
    Command(
        "run",
        "run a trial on this machine; --on det or --on slurm: there",
        f"{_START}:run",
        (
            *_CHOSEN,
            argument(
                "--recover-mode",
                choices=("disabled", "auto", "resume", "save"),
                default="auto",
                help="auto: continue from an earlier state if there is one; resume: only from one; disabled or save: "
                "begin anew (default: auto)",
            ),
            *_STARTED,
        ),
        examples=("det rlhf run line", "det rlhf run line first --on det --follow", "det rlhf run line --on slurm"),
    ),
    Command(
        "status",
        "print the state of a trial",
        f"{_RUNS}:status",
        _CHOSEN,
        examples=("det rlhf status line first",),
    ),
    Command(
        "logs",
        "print the output of a trial",
        f"{_RUNS}:logs",
        (*_CHOSEN, FOLLOW),
        examples=("det rlhf logs -f line first",),
    ),
    Command(
        "stop",
        "end a trial; its workers save their state first",
        f"{_RUNS}:stop",
        (*_CHOSEN, argument("--now", action="store_true", help="kill it: nothing is saved")),
        examples=("det rlhf stop line first",),
    ),
    Command(
        "retry",
        "continue a trial from its last state",
        f"{_START}:retry",
        (*_CHOSEN, *_STARTED),
        examples=("det rlhf retry line first",),
    ),
)
VERBS = complete("rlhf", _COMMANDS, _TARGETS)
