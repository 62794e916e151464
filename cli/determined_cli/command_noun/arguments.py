"""Command table of ``det command``."""

from determined_cli.command import Command, argument
from determined_cli.command_noun.verbs import CONFIGURATION, common

NOUNS_WITHOUT_VERBS = ()

VERBS = (
    Command(
        "run",
        "run a program on the cluster and print its output",
        "determined_cli.command_noun.run:run",
        (
            *CONFIGURATION,
            argument("-d", "--detach", action="store_true", help="print the id and do not wait"),
            argument(
                "entrypoint",
                nargs="...",
                metavar="ENTRYPOINT",
                help="program and arguments; one word with spaces is a shell command",
            ),
        ),
        examples=(
            "det command run nvidia-smi",
            "det cmd run --config resources.slots=0 -c . python3 prepare.py --fast",
            "det cmd run -d 'wc -l *.csv | sort'",
        ),
    ),
    *common("command"),
)
