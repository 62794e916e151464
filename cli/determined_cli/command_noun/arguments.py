"""Command table of ``det command``."""

from determined_cli.command import Command, argument, listing, selecting
from determined_cli.log_arguments import log_arguments

NOUNS_WITHOUT_VERBS = ()

_ID = argument("command_id", metavar="COMMAND_ID", help="id, or the first characters of it")
_IDS = argument("command_id", nargs="+", metavar="COMMAND_ID", help="id, or the first characters of it")

VERBS = (
    Command(
        "run",
        "run a program on the cluster and print its output",
        "determined_cli.command_noun.run:run",
        (
            argument("--config-file", metavar="FILE", help="configuration file (YAML)"),
            argument(
                "--config",
                action="append",
                default=[],
                metavar="KEY=VALUE",
                help="override a setting, for example resources.slots=0 (repeatable)",
            ),
            argument("-c", "--context", metavar="FOLDER", help="folder that the program starts in, on the cluster"),
            argument(
                "-i",
                "--include",
                action="append",
                default=[],
                metavar="PATH",
                help="add a file or folder to the context (repeatable)",
            ),
            argument(
                "-v",
                "--volume",
                action="append",
                default=[],
                metavar="HOST:CONTAINER",
                help="bind mount of a folder of the agent's machine (repeatable)",
            ),
            argument("-d", "--detach", action="store_true", help="print the id and do not wait"),
            argument("--template", metavar="NAME", help="not supported yet"),
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
    Command(
        "list",
        "list commands",
        "determined_cli.command_noun.show:list_commands",
        (argument("-a", "--all", action="store_true", help="include the commands of other users"), selecting, listing),
        ("ls",),
    ),
    Command(
        "describe",
        "show a command in detail",
        "determined_cli.command_noun.show:describe",
        (_IDS, argument("--json", action="store_true", help="JSON")),
        ("d",),
    ),
    Command(
        "logs",
        "print the log of a command",
        "determined_cli.logs:of_command",
        (_ID, log_arguments),
        examples=("det cmd logs 3f2b -f",),
    ),
    Command("config", "print the configuration", "determined_cli.command_noun.show:config", (_ID,)),
    Command("kill", "end at once", "determined_cli.command_noun.show:kill", (_IDS,)),
    Command(
        "set",
        "change a command",
        verbs=(
            Command(
                "priority",
                "set the priority: 1 to 99, lower numbers come first",
                "determined_cli.command_noun.show:set_priority",
                (_ID, argument("priority", type=int)),
            ),
        ),
    ),
)
