"""Command table of ``det checkpoint``."""

from determined_cli.command import EXPERIMENT_ID, YES, Command, argument, listing, ranking, selecting

NOUNS_WITHOUT_VERBS = ()

_RUN = "determined_cli.checkpoint.commands"
_UUID = argument("uuid", metavar="UUID")

VERBS = (
    Command(
        "list",
        "list the checkpoints of an experiment",
        "determined_cli.experiment.show:list_checkpoints",
        (EXPERIMENT_ID, argument("--best", type=int, metavar="N", help="only the N best"), ranking, selecting, listing),
        aliases=("ls",),
        examples=("det checkpoint list 3 --best 1", "det checkpoint list 3 --best 1 --metric val/top5 --goal maximize"),
    ),
    Command(
        "describe",
        "show a checkpoint in detail",
        f"{_RUN}:describe",
        (_UUID, argument("--json", action="store_true", help="JSON")),
    ),
    Command(
        "download",
        "download a checkpoint",
        f"{_RUN}:download",
        (_UUID, argument("-o", "--output-dir", metavar="FOLDER", help="target folder (default: checkpoints/UUID)")),
    ),
    Command(
        "rm",
        "delete checkpoints and their files",
        f"{_RUN}:remove",
        (argument("uuid", nargs="+", metavar="UUID"), YES),
        aliases=("delete",),
    ),
)
