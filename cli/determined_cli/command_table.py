"""Table of nouns: names, aliases and the module of each noun's commands. Imports nothing."""

NOUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "up": ("determined_cli.up.arguments", "start a master and an agent on this machine", ()),
    "down": ("determined_cli.up.arguments", "end what `det up` started", ()),
    "experiment": ("determined_cli.experiment.arguments", "create and steer experiments", ("e",)),
    "trial": ("determined_cli.trial.arguments", "look into single trials", ("t",)),
    "agent": ("determined_cli.agent.arguments", "machines of the cluster", ("a",)),
    "slot": ("determined_cli.agent.slot_arguments", "slots of the machines", ("s",)),
    "user": ("determined_cli.user.arguments", "log in and out, manage users", ("u",)),
    "master": ("determined_cli.master.arguments", "the master itself", ()),
    "version": ("determined_cli.version", "versions of client and master", ()),
    "completion": ("determined_cli.completion", "completion for bash, zsh or fish", ()),
}
"""Noun → (module with ``VERBS``, help, short names). A noun in its module's ``BARE`` has no verbs."""


def find(word: str) -> str | None:
    """Returns the noun with this name or alias, or None."""
    if word in NOUNS:
        return word
    return next((noun for noun, (_, _, short) in NOUNS.items() if word in short), None)
