"""Command table of ``det trial``."""

from determined_cli.command import TRIAL_ID, Command, argument
from determined_cli.log_arguments import first_error_argument, log_arguments
from determined_cli.streams.arguments import INPUT, PAGE, PORTS, RANK, TERMINAL

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
    Command(
        "exec",
        "run a program beside a trial that runs",
        "determined_cli.task.enter:execute_in_trial",
        (INPUT, TERMINAL, RANK, TRIAL_ID),
        examples=("det t exec 7 -- nvidia-smi", "det t exec -it 7 --rank 1 -- python"),
        takes_program=True,
    ),
    Command(
        "shell",
        "open a shell beside a trial that runs",
        "determined_cli.task.enter:open_shell",
        (RANK, TRIAL_ID),
        examples=("det t shell 7",),
    ),
    Command(
        "port-forward",
        "reach a port of a trial from this machine",
        "determined_cli.task.enter:forward_port_of_trial",
        (RANK, TRIAL_ID, PORTS),
        examples=("det t port-forward 7 8888", "det t port-forward 7 9000:8888"),
    ),
    Command(
        "open",
        "open a page that a trial serves in the browser",
        "determined_cli.task.pages:open_page_of_trial",
        (TRIAL_ID, *PAGE),
        examples=("det t open 7 6006", "det t open 7 --path /lab"),
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
