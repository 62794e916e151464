"""Command table of ``det hydra``."""

from determined_cli.command import Command, argument

BARE = ()

_CHECK, _SUBMIT = "determined_cli.hydra.check", "determined_cli.hydra.submit"
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
    help="setting of the experiment, for example resources.slots_per_trial=2 (repeatable)",
)
_SUBMITTED = (
    _CONFIG,
    argument("-f", "--follow", action="store_true", help="follow the log of the first trial"),
    argument("--paused", action="store_true", help="create it paused"),
)
_COMPOSED = (_SCRIPT, _OVERRIDES, _MULTIRUN, _CONFIG_NAME, _CONFIG_PATH, _CONFIG_DIR, _PYTHON)

VERBS = (
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
        "run it on the cluster: an experiment with a trial for each job",
        f"{_SUBMIT}:run",
        (
            *_COMPOSED,
            *_SUBMITTED,
            argument("--dry-run", action="store_true", help="print the experiment's configuration; submit nothing"),
        ),
        examples=(
            "det hydra run train.py +experiment=small -f",
            "det hydra run train.py -m lr=0.1,0.01 seed=1,2,3",
            "det hydra run train.py -m lr=0.1,0.01 --config max_restarts=3",
        ),
        is_intermixed=True,
    ),
    Command(
        "continue",
        "continue an interrupted run or multirun from its checkpoints",
        f"{_SUBMIT}:continue_run",
        (
            argument("folder", metavar="FOLDER", help="folder of the run, with .hydra, or of the multirun"),
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
            argument("--on", choices=("local", "det", "slurm"), default="local", help="where it runs (default: local)"),
            argument("--use_slurm", "--use-slurm", action="store_true", help="same as --on slurm"),
            argument("--script", metavar="SCRIPT", help="the script with @hydra.main (default: the one that fits)"),
            _PYTHON,
            *_SUBMITTED,
            argument("--dry-run", action="store_true", help="print the commands; run nothing"),
        ),
        examples=(
            "det hydra continue outputs/2026-11-25/10-00-00",
            "det hydra continue outputs/run1 --new_overrides 'trainer.steps=2000'",
            "det hydra continue multirun/2026-11-25/10-00-00 --on det",
        ),
    ),
)
