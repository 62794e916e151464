"""Table of nouns: names, aliases and the module of each noun's commands. Imports nothing."""

NOUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "up": ("determined_cli.up.arguments", "start a master and an agent on this machine", ()),
    "down": ("determined_cli.up.arguments", "stop what `det up` started", ()),
    "run": ("determined_cli.run", "run a command in the present folder as an experiment", ()),
    "experiment": ("determined_cli.experiment.arguments", "create and manage experiments", ("e",)),
    "trial": ("determined_cli.trial.arguments", "show trials, their logs and checkpoints", ("t",)),
    "command": ("determined_cli.command_noun.arguments", "run a program on the cluster, and manage it", ("cmd",)),
    "shell": ("determined_cli.command_noun.shell_arguments", "start and open shells on the cluster", ()),
    "job": ("determined_cli.job.arguments", "list the queue, and change the place of jobs in it", ("j",)),
    "task": ("determined_cli.task.arguments", "list and end what runs, print its log", ()),
    "checkpoint": ("determined_cli.checkpoint.arguments", "list, download and delete checkpoints", ("c",)),
    "agent": ("determined_cli.agent.arguments", "list, enable and disable agents", ("a",)),
    "slot": ("determined_cli.agent.slot_arguments", "list, enable and disable slots", ("s",)),
    "user": ("determined_cli.user.arguments", "log in and out, manage users", ("u",)),
    "master": ("determined_cli.master.arguments", "show information, settings and logs of the master", ()),
    "tunnel": ("determined_cli.streams.arguments", "reach a port of a task from this machine", ()),
    "ssh-config": ("determined_cli.ssh.arguments", "let ssh, scp, rsync and editors enter tasks", ()),
    "why": ("determined_cli.why", "say why something waits and what would start it", ()),
    "preview-search": ("determined_cli.preview_search", "print how many trials of a configuration train how long", ()),
    "runner": ("determined_cli.runner.arguments", "run a grid of commands, on this machine or the cluster", ()),
    "hydra": ("determined_cli.hydra.arguments", "check, run, watch and continue Hydra projects", ()),
    "rlhf": ("determined_cli.rlhf.arguments", "run experiments of several worker types, such as PPO", ()),
    "batch": ("determined_cli.batch.arguments", "run the command file of a project as a job of Slurm", ()),
    "dev": ("determined_cli.dev.arguments", "call the REST API with curl", ()),
    "version": ("determined_cli.version", "print the versions of client and master", ()),
    "completion": ("determined_cli.completion.command_words", "print a completion script for bash, zsh or fish", ()),
}
"""Noun → (module with ``VERBS``, help, short names). A noun in its module's ``NOUNS_WITHOUT_VERBS`` has no verbs."""

COMPLETE = "__complete"
"""Command of the completion scripts that prints ids."""

NOT_OFFERED: dict[str, str] = {
    **dict.fromkeys(("notebook", "tensorboard"), "`det command run` runs a program on the cluster"),
    **dict.fromkeys(("model", "m"), "there is no model registry; `det trial download-checkpoint` fetches checkpoints"),
    **dict.fromkeys(("workspace", "w", "project", "p"), "use labels to group experiments: `det experiment label`"),
    **dict.fromkeys(("rbac", "user-group", "oauth", "sso", "token"), "users are admins or not: `det user --help`"),
    **dict.fromkeys(("template", "config-policies"), "override values with --config KEY=VALUE"),
    **dict.fromkeys(("resource-pool", "resources", "rp"), "`det agent list` and `det slot list` show the machines"),
    "proxy": "`det task port-forward TASK_ID PORT` reaches a port of a task",
    "deploy": "`det up` starts a cluster",
    "auth": "`det user login`",
    "ssh": "`det ssh-config` prepares `ssh det-trial-ID`",
    "exec": "`det trial shell` and `det task exec` run programs beside tasks",
    **dict.fromkeys(("secret", "secrets"), "values below data.secrets of a configuration are masked everywhere"),
    **dict.fromkeys(("artifact", "artifacts"), "checkpoints hold files: `det checkpoint download UUID`"),
    **dict.fromkeys(("logs", "log"), "`det trial logs`, `det experiment logs`, `det task logs`"),
}
"""Commands of Determined's client that this one does not have, and what to use instead."""

NOT_OFFERED_VERBS: dict[str, dict[str, str]] = {
    "experiment": {
        "move": "use labels to group experiments: `det experiment label`",
        "delete-tb-files": "event files are deleted with the experiment: `det experiment delete`",
    },
    "experiment set": {"log-retention": "logs are kept until `det experiment delete`"},
    "trial": {"set": "logs are kept until `det experiment delete`"},
    "master": {"cleanup-logs": "logs are kept until `det experiment delete`"},
    "dev": {
        **dict.fromkeys(("auth-token", "token"), "`det dev curl` sends the token of the stored sign-in"),
        **dict.fromkeys(("bindings", "b"), "`det dev curl` calls the REST API"),
    },
}
"""Verbs of Determined's client that this one does not have, by noun, and what to use instead."""


def find(word: str) -> str | None:
    """Returns the noun with this name or alias, or None."""
    if word in NOUNS:
        return word
    return next((noun for noun, (_, _, short) in NOUNS.items() if word in short), None)
