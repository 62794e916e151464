"""Command table of ``det hydra``."""

from determined_cli.command import Command, argument
from determined_cli.workflow_verbs import DRY_RUN, FOLLOW, Targets, complete

NOUNS_WITHOUT_VERBS = ()

_CHECK, _SUBMIT, _RUNS = "determined_cli.hydra.check", "determined_cli.hydra.submit", "determined_cli.hydra.runs"
_TARGETS = Targets(
    default={"run": "det", "retry": None},
    flags={("--use_slurm", "--use-slurm"): "slurm"},
)
_SCRIPT = argument("script", metavar="SCRIPT", help="the script with @hydra.main, or its module as after `python -m`")
_OVERRIDES = argument(
    "overrides", nargs="*", default=[], metavar="OVERRIDE", help="overrides of Hydra: lr=0.1, +experiment=name"
)
_MULTIRUN = argument("-m", "--multirun", action="store_true", help="sweep over the values of the overrides")
_CONFIG_NAME = argument("-cn", "--config-name", metavar="NAME", help="another config_name than that of @hydra.main")
_CONFIG_PATH = argument("-cp", "--config-path", metavar="FOLDER", help="another config_path than that of @hydra.main")
_CONFIG_DIR = argument("-cd", "--config-dir", metavar="FOLDER", help="one more folder of configurations")
_PYTHON = argument("--python", metavar="PYTHON", help="Python with the project's packages (default: the active one)")
_CONFIG = argument(
    "--config",
    action="append",
    default=[],
    metavar="KEY=VALUE",
    help="with --on det, a setting of the experiment: resources.slots_per_trial=2 (repeatable)",
)
_SUBMITTED = (
    _CONFIG,
    argument(
        "--site",
        metavar="FILE",
        help="with --on slurm, another SITE.yaml than that of the project, of $DET_SITE, or of the site",
    ),
    argument("-f", "--follow", action="store_true", help="with --on det, follow the log of the first trial"),
    argument("--paused", action="store_true", help="with --on det, create it paused"),
)
_COMPOSED = (_SCRIPT, _OVERRIDES, _MULTIRUN, _CONFIG_NAME, _CONFIG_PATH, _CONFIG_DIR, _PYTHON)

_FOLDER = argument("folder", metavar="FOLDER", help="folder of the run, with .hydra, or of the multirun")

_COMMANDS = (
    Command(
        "init",
        "write a small project: a script and configurations",
        f"{_RUNS}:init",
        (argument("folder", nargs="?", default=".", metavar="FOLDER", help="where (default: the working folder)"),),
        examples=("det hydra init", "det hydra init line"),
    ),
    Command(
        "check",
        "print each value of the configuration with its origin",
        f"{_CHECK}:check",
        (*_COMPOSED, argument("--json", action="store_true", help="print JSON")),
        examples=("det hydra check train.py +experiment=small", "det hydra check train.py -m lr=0.1,0.01 --json"),
        is_intermixed=True,
    ),
    Command(
        "run",
        "run it on the cluster; --on local or --on slurm: there",
        f"{_SUBMIT}:run",
        (
            *_COMPOSED,
            *_SUBMITTED,
            argument(
                "--dry-run",
                action="store_true",
                help="print the experiment's configuration or the command; run nothing",
            ),
        ),
        examples=(
            "det hydra run train.py +experiment=small -f",
            "det hydra run train.py -m lr=0.1,0.01 seed=1,2,3",
            "det hydra run train.py -m lr=0.1,0.01 --config max_restarts=3",
            "det hydra run train.py lr=0.1 --on local",
        ),
        is_intermixed=True,
    ),
    Command(
        "status",
        "print the states of the jobs of a run folder",
        f"{_RUNS}:status",
        (_FOLDER,),
        examples=("det hydra status outputs/2026-11-25/10-00-00",),
    ),
    Command(
        "logs",
        "print the output of a run folder's jobs",
        f"{_RUNS}:logs",
        (
            _FOLDER,
            argument("--job", type=int, metavar="N", help="only the job with this number of a multirun"),
            FOLLOW,
        ),
        examples=("det hydra logs -f outputs/2026-11-25/10-00-00", "det hydra logs multirun/sweep --job 2"),
    ),
    Command(
        "stop",
        "end a run folder's jobs; `retry` continues them",
        f"{_RUNS}:stop",
        (_FOLDER, argument("--now", action="store_true", help="kill them: no checkpoint is saved")),
        examples=("det hydra stop outputs/2026-11-25/10-00-00",),
    ),
    Command(
        "retry",
        "continue the unfinished jobs from their checkpoints",
        f"{_SUBMIT}:retry",
        (
            _FOLDER,
            argument(
                "--checkpoint_step",
                "--checkpoint-step",
                type=int,
                default=-1,
                metavar="N",
                help="step of the checkpoint (default: -1, the newest)",
            ),
            argument(
                "--new_overrides", "--new-overrides", default="", metavar="TEXT", help="more overrides, as one text"
            ),
            argument("--script", metavar="SCRIPT", help="the script with @hydra.main (default: the one that fits)"),
            _PYTHON,
            *_SUBMITTED,
            DRY_RUN,
        ),
        aliases=("continue",),
        examples=(
            "det hydra retry outputs/2026-11-25/10-00-00",
            "det hydra retry outputs/run1 --new_overrides 'trainer.steps=2000'",
            "det hydra retry multirun/2026-11-25/10-00-00 --on det",
        ),
    ),
)
VERBS = complete("hydra", _COMMANDS, _TARGETS)
