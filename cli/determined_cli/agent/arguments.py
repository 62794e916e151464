"""Command table of ``det agent``."""

from determined_cli.command import Command, argument, listing, selecting

NOUNS_WITHOUT_VERBS = ()

_RUN = "determined_cli.agent.commands"
_WHICH = (
    argument("agent_id", nargs="?", metavar="AGENT_ID"),
    argument("--all", action="store_true", help="act on all agents"),
)

VERBS = (
    Command("list", "list agents", f"{_RUN}:list_agents", (selecting, listing), aliases=("ls",)),
    Command("enable", "enable an agent", f"{_RUN}:enable", _WHICH),
    Command(
        "disable",
        "disable an agent and kill its tasks, unless --drain is given",
        f"{_RUN}:disable",
        (*_WHICH, argument("--drain", action="store_true", help="let running tasks finish")),
    ),
)
