"""Command table of ``det experiment``."""

from determined_cli.command import EXPERIMENT_ID, YES, Command, argument, listing
from determined_cli.log_arguments import log_arguments

BARE = ()

_CONFIG = argument(
    "--config", action="append", default=[], metavar="KEY=VALUE", help="change a setting, as a.b=1 (may be repeated)"
)
_FOLLOW = argument("-f", "--follow", "--follow-first-trial", action="store_true", help="follow the first trial")
_PAUSED = argument("--paused", action="store_true", help="do not start it yet")
_IDS = argument("experiment_id", type=int, nargs="+", metavar="EXPERIMENT_ID")
_LABEL = (EXPERIMENT_ID, argument("label"))


def _steer(name: str, help: str, aliases: tuple[str, ...] = ()) -> Command:
    return Command(name, help, f"determined_cli.experiment.lifecycle:{name}", (_IDS,), aliases)


VERBS = (
    Command(
        "create",
        "a new experiment from a configuration and a context folder",
        "determined_cli.experiment.create:create",
        (
            argument("config_file", metavar="CONFIG", help="configuration file (YAML), - for standard input"),
            argument("context", metavar="CONTEXT", nargs="?", help="folder with the code"),
            _FOLLOW,
            argument("-i", "--include", action="append", default=[], metavar="PATH", help="send this too"),
            argument("--follow-links", action="store_true", help="send the targets of links that leave the context"),
            _CONFIG,
            _PAUSED,
            argument("--project_id", "--project-id", type=int, metavar="ID", help="the project it belongs to"),
            argument("--template", metavar="NAME", help="comes later"),
            argument("--local", action="store_true", help="run on this machine, without a master"),
            argument("-t", "--test-mode", "--test", action="store_true", help="with --local: one batch of everything"),
            argument("--python", metavar="PYTHON", help="with --local: the Python to run under"),
        ),
        examples=(
            "det experiment create config.yaml context/ -f",
            "det e create config.yaml . --config searcher.max_length.batches=100 -i ../shared",
            "det e create --local --test-mode config.yaml .",
        ),
    ),
    Command(
        "list",
        "experiments",
        "determined_cli.experiment.show:list_experiments",
        (
            argument("-a", "--all", action="store_true", help="archived ones and those of other users too"),
            argument("--limit", type=int, metavar="N", help="at most N"),
            listing,
        ),
        ("ls",),
    ),
    Command(
        "describe",
        "everything about experiments",
        "determined_cli.experiment.show:describe",
        (_IDS, argument("--metrics", action="store_true", help="metrics of every workload too"), listing),
        ("d",),
    ),
    Command(
        "logs",
        "what the first trial printed",
        "determined_cli.logs:of_experiment",
        (EXPERIMENT_ID, log_arguments),
        examples=("det e logs 3 -f", "det e logs 3 --tail 100 --rank-id 0"),
    ),
    _steer("pause", "free the slots once the state is saved"),
    _steer("activate", "go on where it was paused", ("unpause",)),
    _steer("cancel", "end it once the state is saved"),
    _steer("kill", "end it at once"),
    Command(
        "wait",
        "wait for the end; exit code 0 where it completed",
        "determined_cli.experiment.wait:wait",
        (
            EXPERIMENT_ID,
            argument("--timeout", type=float, metavar="SECONDS", help="give up after this time (exit code 8)"),
            argument("--polling-interval", type=float, default=1.0, metavar="SECONDS", help="default: 1"),
        ),
    ),
    Command(
        "list-trials", "its trials", "determined_cli.experiment.show:list_trials", (EXPERIMENT_ID, listing), ("lt",)
    ),
    Command(
        "list-checkpoints",
        "its checkpoints",
        "determined_cli.experiment.show:list_checkpoints",
        (EXPERIMENT_ID, argument("--best", type=int, metavar="N", help="the N best"), listing),
        ("lc",),
    ),
    Command(
        "download-model-def",
        "fetch the context it was created with",
        "determined_cli.experiment.show:download_model_def",
        (EXPERIMENT_ID, argument("-o", "--output-dir", default=".", metavar="FOLDER", help="default: here")),
    ),
    Command("delete", "delete it with its checkpoints", "determined_cli.experiment.lifecycle:delete", (_IDS, YES)),
    _steer("archive", "out of the list, kept"),
    _steer("unarchive", "back into the list"),
    Command(
        "label",
        "add or remove labels",
        verbs=(
            Command("add", "add a label", "determined_cli.experiment.lifecycle:add_label", _LABEL),
            Command("remove", "remove a label", "determined_cli.experiment.lifecycle:remove_label", _LABEL, ("rm",)),
        ),
    ),
    Command(
        "fork",
        "a new experiment with the code of this one and its configuration, changed",
        "determined_cli.experiment.create:fork",
        (
            EXPERIMENT_ID,
            argument("config_file", metavar="CONFIG", nargs="?", help="default: the one that it was created with"),
            _CONFIG,
            _PAUSED,
            _FOLLOW,
        ),
        examples=("det e fork 3 --config hyperparameters.lr=0.01 -f",),
    ),
)
