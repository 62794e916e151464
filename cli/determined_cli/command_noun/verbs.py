"""The verbs that ``det command`` and the nouns of services have in common."""

from __future__ import annotations

from determined_cli.command import Command, argument, listing, selecting
from determined_cli.log_arguments import log_arguments

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from determined_cli.command import Arguments

CONFIGURATION = (
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
    argument("--template", metavar="NAME", help="not supported yet"),
)


def id_of(kind: str) -> Arguments:
    """Returns the argument for the id of one task of a kind."""
    return argument(f"{kind}_id", metavar=f"{kind.upper()}_ID", help="id, or the first characters of it")


def common(kind: str) -> tuple[Command, ...]:
    """Returns the verbs of a kind: ``command`` or a service."""

    def one_of(parser: ArgumentParser) -> None:
        parser.set_defaults(kind=kind)

    one = id_of(kind)
    several = argument(f"{kind}_id", nargs="+", metavar=f"{kind.upper()}_ID", help="id, or the first characters of it")
    everybody = argument("-a", "--all", action="store_true", help=f"include the {kind}s of other users")
    show = "determined_cli.command_noun.show"
    return (
        Command(
            "list",
            f"list {kind}s",
            f"{show}:list_tasks",
            (everybody, selecting, listing, one_of),
            ("ls",),
        ),
        Command(
            "describe",
            f"show a {kind} in detail",
            f"{show}:describe",
            (several, argument("--json", action="store_true", help="JSON"), one_of),
            ("d",),
        ),
        Command(
            "logs",
            f"print the log of a {kind}",
            "determined_cli.logs:of_command",
            (one, log_arguments, one_of),
            examples=(f"det {kind} logs 3f2b -f",),
        ),
        Command("config", "print the configuration", f"{show}:config", (one, one_of)),
        Command("kill", "end at once", f"{show}:kill", (several, one_of)),
        Command(
            "set",
            f"change a {kind}",
            verbs=(
                Command(
                    "priority",
                    "set the priority: 1 to 99, lower numbers come first",
                    f"{show}:set_priority",
                    (one, argument("priority", type=int), one_of),
                ),
            ),
        ),
    )
