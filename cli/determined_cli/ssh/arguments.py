"""Command table of ``det ssh-config``."""

from determined_cli.command import Command, argument

NOUNS_WITHOUT_VERBS = ("ssh-config",)

VERBS = (
    Command(
        "ssh-config",
        "let ssh, scp, rsync and editors enter tasks: `ssh det-trial-7`",
        "determined_cli.ssh.configure:run",
        (
            argument("--remove", action="store_true", help="undo it"),
            argument("--connect", metavar="HOST", help="pass SSH on to a task; ssh itself calls this"),
        ),
        examples=("det ssh-config", "ssh det-trial-7 nvidia-smi", "scp det-trial-7:out.txt .", "ssh det-task-3f2b"),
    ),
)
