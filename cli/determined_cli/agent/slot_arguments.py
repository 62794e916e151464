"""Command table of ``det slot``. The table of nouns imports one module per noun."""

from determined_cli.command import Command, argument, listing, selecting

NOUNS_WITHOUT_VERBS = ()

_RUN = "determined_cli.agent.commands"
_WHICH = (argument("agent_id", metavar="AGENT_ID"), argument("slot_id", metavar="SLOT_ID"))

VERBS = (
    Command(
        "list", "list slots and the tasks that hold them", f"{_RUN}:list_slots", (selecting, listing), aliases=("ls",)
    ),
    Command("enable", "enable a slot", f"{_RUN}:enable_slot", _WHICH),
    Command("disable", "disable a slot; a running task is killed", f"{_RUN}:disable_slot", _WHICH),
)
