"""Command table of ``det trial``."""

from determined_cli.command import TRIAL_ID, Command, argument
from determined_cli.log_arguments import first_error_argument, log_arguments

NOUNS_WITHOUT_VERBS = ()

VERBS = (
    Command(
        "describe",
        "show state, metrics and attempts",
        "determined_cli.trial.describe:describe",
        (
            TRIAL_ID,
            argument("--metrics", action="store_true", help="print every report of metrics"),
            argument("--json", action="store_true", help="JSON"),
        ),
        aliases=("d",),
    ),
    Command(
        "logs",
        "print the log of a trial",
        "determined_cli.logs:of_trial",
        (TRIAL_ID, log_arguments, first_error_argument),
        examples=("det t logs 7 -f", "det t logs 7 --tail 50 --level ERROR", "det t logs 7 --first-error"),
    ),
    Command("kill", "end at once, without a checkpoint", "determined_cli.trial.commands:kill", (TRIAL_ID,)),
    Command(
        "download-checkpoint",
        "download a checkpoint, or its outputs",
        "determined_cli.trial.commands:download_checkpoint",
        (
            TRIAL_ID,
            argument("--best", action="store_true", help="the best by the searcher's metric; an error without one"),
            argument("--latest", action="store_true", help="the newest checkpoint"),
            argument("--uuid", help="the checkpoint with this UUID"),
            argument("--outputs", action="store_true", help="what its script wrote into the folders of outputs"),
            argument(
                "-o",
                "--output-dir",
                metavar="FOLDER",
                help="target folder (default: checkpoints/UUID, or outputs/trial-ID)",
            ),
        ),
        aliases=("download",),
    ),
    Command(
        "support-bundle",
        "archive state and log, with secrets masked",
        "determined_cli.trial.support_bundle:support_bundle",
        (
            TRIAL_ID,
            argument(
                "-o", "--output-dir", default=".", metavar="FOLDER", help="target folder (default: current folder)"
            ),
        ),
    ),
)
