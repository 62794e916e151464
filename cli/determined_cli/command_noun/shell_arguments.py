"""Command table of ``det shell``. The table of nouns imports one module per noun."""

from determined_cli.command import Command, argument
from determined_cli.command_noun.verbs import CONFIGURATION, common, id_of

NOUNS_WITHOUT_VERBS = ()

VERBS = (
    Command(
        "start",
        "start a container with a shell in it, and open the shell",
        "determined_cli.command_noun.shell:start",
        (
            *CONFIGURATION,
            argument("-d", "--detach", action="store_true", help="print the id and do not open it"),
        ),
        examples=(
            "det shell start",
            "det shell start --config resources.slots=0 --config idle_timeout=30m -c .",
            "det shell start -d -v /data:/data",
        ),
    ),
    Command(
        "open",
        "open a shell that was started; it may be open several times",
        "determined_cli.command_noun.shell:open_shell",
        (id_of("shell"),),
    ),
    *common("shell"),
)
