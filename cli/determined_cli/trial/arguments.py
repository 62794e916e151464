"""Command table of ``det trial``."""

from determined_cli.command import TRIAL_ID, Command, argument
from determined_cli.log_arguments import log_arguments

BARE = ()

VERBS = (
    Command(
        "describe",
        "state, hyperparameters and workloads",
        "determined_cli.trial.commands:describe",
        (
            TRIAL_ID,
            argument("--metrics", action="store_true", help="metrics of every batch too"),
            argument("--json", action="store_true", help="JSON"),
        ),
        aliases=("d",),
    ),
    Command(
        "logs",
        "what the trial printed",
        "determined_cli.logs:of_trial",
        (TRIAL_ID, log_arguments),
        examples=("det t logs 7 -f", "det t logs 7 --tail 50 --level ERROR"),
    ),
    Command("kill", "end it at once", "determined_cli.trial.commands:kill", (TRIAL_ID,)),
    Command(
        "download-checkpoint",
        "fetch a checkpoint, the best by default",
        "determined_cli.trial.commands:download_checkpoint",
        (
            TRIAL_ID,
            argument("--best", action="store_true", help="the best by the searcher's metric (default)"),
            argument("--latest", action="store_true", help="the newest"),
            argument("--uuid", help="this very one"),
            argument("-o", "--output-dir", metavar="FOLDER", help="default: checkpoints/UUID"),
        ),
        aliases=("download",),
    ),
)
