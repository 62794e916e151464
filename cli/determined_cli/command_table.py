"""Table of nouns: names, aliases and the module of each noun's commands. Imports nothing."""

NOUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "up": ("determined_cli.up.arguments", "start a master and an agent on this machine", ()),
    "down": ("determined_cli.up.arguments", "stop what `det up` started", ()),
    "experiment": ("determined_cli.experiment.arguments", "create and manage experiments", ("e",)),
    "trial": ("determined_cli.trial.arguments", "show trials, their logs and checkpoints", ("t",)),
    "agent": ("determined_cli.agent.arguments", "list, enable and disable agents", ("a",)),
    "slot": ("determined_cli.agent.slot_arguments", "list, enable and disable slots", ("s",)),
    "user": ("determined_cli.user.arguments", "log in and out, manage users", ("u",)),
    "master": ("determined_cli.master.arguments", "show information, settings and logs of the master", ()),
    "version": ("determined_cli.version", "print the versions of client and master", ()),
    "completion": ("determined_cli.completion", "print a completion script for bash, zsh or fish", ()),
}
"""Noun → (module with ``VERBS``, help, short names). A noun in its module's ``BARE`` has no verbs."""


def find(word: str) -> str | None:
    """Returns the noun with this name or alias, or None."""
    if word in NOUNS:
        return word
    return next((noun for noun, (_, _, short) in NOUNS.items() if word in short), None)
