"""``det trial``: look into single trials."""

from determined_cli.logs_arguments import log_arguments
from determined_cli.verbs import TRIAL_ID, Verb, argument

BARE = ()

VERBS = (
    Verb(
        "describe",
        "state, hyperparameters and workloads",
        "determined_cli.trial_verbs:describe",
        (
            TRIAL_ID,
            argument("--metrics", action="store_true", help="metrics of every batch too"),
            argument("--json", action="store_true", help="JSON"),
        ),
        aliases=("d",),
    ),
    Verb(
        "logs",
        "what the trial printed",
        "determined_cli.logs:of_trial",
        (TRIAL_ID, log_arguments),
        examples=("det t logs 7 -f", "det t logs 7 --tail 50 --level ERROR"),
    ),
    Verb("kill", "end it at once", "determined_cli.trial_verbs:kill", (TRIAL_ID,)),
    Verb(
        "download-checkpoint",
        "fetch a checkpoint, the best by default",
        "determined_cli.trial_verbs:download_checkpoint",
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
