"""Command table of ``det experiment``."""

from __future__ import annotations

from determined_cli.command import EXPERIMENT_ID, NO_CODE, YES, Command, argument, listing, ranking, seconds, selecting
from determined_cli.experiment.set_arguments import SET_VERBS
from determined_cli.log_arguments import first_error_argument, log_arguments

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import ArgumentParser

NOUNS_WITHOUT_VERBS = ()

_CONFIG = argument(
    "--config",
    action="append",
    default=[],
    metavar="KEY=VALUE",
    help="override a setting, for example a.b=1 (repeatable)",
)
_FOLLOW = argument(
    "-f", "--follow", "--follow-first-trial", action="store_true", help="follow the log of the first trial"
)
_PUBLISH = argument(
    "-p",
    "--publish",
    action="append",
    default=[],
    metavar="[LOCAL:]REMOTE",
    help="reach this port of the first trial from this machine while its log is followed (repeatable)",
)
_PAUSED = argument("--paused", action="store_true", help="create it paused")
_IDS = argument("experiment_id", type=int, nargs="+", metavar="EXPERIMENT_ID")
_SOME_IDS = argument("experiment_id", type=int, nargs="*", metavar="EXPERIMENT_ID")


def _bulk(parser: ArgumentParser) -> None:
    """Adds the options that find experiments instead of naming their ids."""
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="CONDITION",
        help="your experiments for which this is true, as in `det experiment list` (repeatable)",
    )
    parser.add_argument("-a", "--all", action="store_true", help="all of your experiments to which it applies")
    parser.set_defaults(sort=None)


_LABEL = (argument("experiment_id", type=int, nargs="?", metavar="EXPERIMENT_ID"), argument("label"), _bulk, YES)


def _steer(name: str, help: str, aliases: tuple[str, ...] = ()) -> Command:
    return Command(
        name,
        help,
        f"determined_cli.experiment.lifecycle:{name}",
        (_SOME_IDS, _bulk, YES),
        aliases,
        examples=(f"det e {name} 3 4", f"det e {name} --filter 'name ~ resnet'"),
    )


VERBS = (
    Command(
        "create",
        "create an experiment",
        "determined_cli.experiment.create:create",
        (
            argument("config_file", metavar="CONFIG", help="configuration file (YAML); - reads standard input"),
            argument("context", metavar="CONTEXT", nargs="?", help="context: the folder with the code"),
            _FOLLOW,
            argument(
                "-i",
                "--include",
                action="append",
                default=[],
                metavar="PATH",
                help="add a file or folder to the context (repeatable)",
            ),
            argument(
                "--follow-links",
                action="store_true",
                help="send the targets of links that point outside of the context",
            ),
            _CONFIG,
            _PAUSED,
            NO_CODE,
            _PUBLISH,
            argument("--project_id", "--project-id", type=int, metavar="ID", help="project of the new experiment"),
            argument("--template", metavar="NAME", help="not supported yet"),
            argument("--local", action="store_true", help="run on this machine, without a master"),
            argument(
                "-t", "--test-mode", "--test", action="store_true", help="train and validate on one batch, then end"
            ),
            argument("--python", metavar="PYTHON", help="with --local: Python interpreter to use"),
            argument(
                "--slots",
                type=int,
                metavar="N",
                help="with --local: run the launch layer with N processes (default: one process without it)",
            ),
        ),
        examples=(
            "det experiment create config.yaml context/ -f",
            "det e create config.yaml . --config searcher.max_length.batches=100 -i ../shared",
            "det e create --local --test-mode config.yaml .",
            "det e create --test-mode config.yaml .",
        ),
    ),
    Command(
        "list",
        "experiments",
        "determined_cli.experiment.show:list_experiments",
        (
            argument("-a", "--all", action="store_true", help="include archived experiments and those of other users"),
            argument("--limit", type=int, metavar="N", help="show at most N experiments"),
            argument("--offset", type=int, default=0, metavar="N", help="leave out the first N experiments"),
            argument(
                "--pages",
                choices=("one", "all"),
                help="one: a page of --limit experiments (default: 200); all: every page, of --limit each",
            ),
            selecting,
            listing,
        ),
        ("ls",),
        examples=(
            "det e list --filter state=ERROR --sort start_time:desc --columns id,name",
            "det e list --all --filter 'progress>50%' --filter name~resnet",
            "det e list --limit 20",
        ),
    ),
    Command(
        "describe",
        "show an experiment in detail",
        "determined_cli.experiment.show:describe",
        (
            _IDS,
            argument("--metrics", action="store_true", help="include the metrics of each workload"),
            argument("--decisions", action="store_true", help="include each decision of its search, with the reason"),
            listing,
        ),
        ("d",),
    ),
    Command(
        "logs",
        "print the log of the first trial",
        "determined_cli.logs:of_experiment",
        (EXPERIMENT_ID, log_arguments, first_error_argument),
        examples=("det e logs 3 -f", "det e logs 3 --tail 100 --rank-id 0"),
    ),
    _steer("pause", "pause: save a checkpoint, then release the slots"),
    _steer("activate", "resume a paused experiment", ("unpause",)),
    _steer("cancel", "stop: save a checkpoint, then end"),
    _steer("kill", "end at once, without a checkpoint"),
    Command(
        "wait",
        "wait until it ends; exit code 0 if it completed",
        "determined_cli.experiment.wait:wait",
        (
            EXPERIMENT_ID,
            argument("--timeout", type=seconds, metavar="SECONDS", help="stop waiting after this time (exit code 8)"),
            argument(
                "--polling-interval",
                type=seconds,
                default=1.0,
                metavar="SECONDS",
                help="time between two requests (default: 1)",
            ),
        ),
    ),
    Command(
        "list-trials",
        "list its trials",
        "determined_cli.experiment.show:list_trials",
        (EXPERIMENT_ID, selecting, listing),
        ("lt",),
    ),
    Command(
        "list-checkpoints",
        "list its checkpoints",
        "determined_cli.experiment.show:list_checkpoints",
        (EXPERIMENT_ID, argument("--best", type=int, metavar="N", help="only the N best"), ranking, selecting, listing),
        ("lc",),
    ),
    Command(
        "download-model-def",
        "download its context (code)",
        "determined_cli.experiment.show:download_model_def",
        (
            EXPERIMENT_ID,
            argument(
                "-o", "--output-dir", default=".", metavar="FOLDER", help="target folder (default: current folder)"
            ),
        ),
    ),
    Command(
        "download",
        "download its best checkpoints, or its outputs",
        "determined_cli.experiment.download:download",
        (
            EXPERIMENT_ID,
            argument("--best", "--top-n", type=int, default=1, metavar="N", help="the N best (default: 1)"),
            ranking,
            argument("--latest", action="store_true", help="the newest checkpoint"),
            argument("--outputs", action="store_true", help="what its scripts wrote into the folders of outputs"),
            argument(
                "-o",
                "--output-dir",
                metavar="FOLDER",
                help="target folder (default: checkpoints, or outputs); each checkpoint or trial becomes a folder "
                "there",
            ),
        ),
    ),
    Command(
        "config",
        "print its configuration, with secrets masked",
        "determined_cli.experiment.settings:config",
        (
            EXPERIMENT_ID,
            argument("--original", "--submitted", action="store_true", help="the text that was submitted"),
            argument("--json", action="store_const", const="json", dest="format", help="JSON"),
            argument("--yaml", action="store_const", const="yaml", dest="format", help="YAML (default)"),
        ),
    ),
    Command(
        "diff",
        "compare configuration and code of two experiments",
        "determined_cli.experiment.diff:diff",
        (EXPERIMENT_ID, argument("other_id", type=int, metavar="OTHER_ID", help="the experiment to compare with")),
        examples=("det e diff 3 4", "det e diff 3 4 | less"),
    ),
    Command("set", "change a setting", verbs=SET_VERBS),
    Command(
        "delete", "delete it and its checkpoints", "determined_cli.experiment.lifecycle:delete", (_SOME_IDS, _bulk, YES)
    ),
    _steer("archive", "hide it from lists; nothing is deleted"),
    _steer("unarchive", "show it in lists again"),
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
        "create an experiment from code and config of this one",
        "determined_cli.experiment.create:fork",
        (
            EXPERIMENT_ID,
            argument(
                "config_file", metavar="CONFIG", nargs="?", help="configuration file (default: that of the parent)"
            ),
            _CONFIG,
            _PAUSED,
            _FOLLOW,
            _PUBLISH,
        ),
        examples=("det e fork 3 --config hyperparameters.lr=0.01 -f",),
    ),
    Command(
        "continue",
        "run an experiment that has ended further",
        "determined_cli.experiment.continuation:continue_",
        (
            EXPERIMENT_ID,
            argument("--config-file", metavar="CONFIG", help="settings to change, as YAML (a single-trial experiment)"),
            _CONFIG,
            _FOLLOW,
        ),
        examples=("det e continue 3 --config searcher.max_length.batches=2000 -f", "det e continue 3"),
    ),
)
