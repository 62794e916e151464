"""``det run``: an experiment of one command in the present folder, without a configuration file."""

from __future__ import annotations

from determined_cli.command import NO_CODE, Command, argument

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from pathlib import Path

NOUNS_WITHOUT_VERBS = ("run",)


def run(args: Namespace) -> int:
    """Creates the experiment and follows it. Returns the exit code of following it, or 0 with ``--detach``."""
    from pathlib import Path

    from determined_cli.experiment.create import Usage
    from determined_cli.terminal.messages import say
    from determined_workflows import command_run

    if args.local and args.detach:
        raise Usage("--local and --detach exclude each other: a local run has nothing to come back to")
    text, warnings = command_run.prepare(
        _command(args.command), slots=args.slots, pool=args.pool, outputs=args.outputs, changes=args.config
    )
    folder, includes = Path.cwd(), [Path(each) for each in args.include]
    if args.local:
        from determined.local import run_local

        return run_local(text, name=command_run.CONFIG_NAME, context=folder, includes=includes, test_mode=False)
    if warnings:
        say(warnings)
    return _submit(args, text, folder, includes)


def _submit(args: Namespace, text: str, folder: Path, includes: Sequence[Path]) -> int:
    from determined.context import KnownFolders, pack
    from determined_cli import connection
    from determined_cli.experiment.create import report_created
    from determined_cli.terminal.messages import say
    from determined_workflows import command_run, composed_experiment

    packed = pack(folder, includes, known=KnownFolders.of_user())
    if args.no_code:
        packed = packed.without_code()
    for note in packed.notes:
        say(note)
    session = connection.connect(args.options)
    answer = composed_experiment.submit(session, text, packed, name=command_run.CONFIG_NAME)
    return report_created(session, answer, is_followed=not args.detach)


def _command(words: Sequence[str]) -> list[str]:
    """Returns the words after ``--``. Raises Usage where it is missing, or nothing follows."""
    from determined_cli.experiment.create import Usage

    if words[:1] == ["--"]:
        if len(words) > 1:
            return list(words[1:])
        raise Usage("no command follows --; for example: det run -- python3 train.py --lr 0.1")
    if not words:
        raise Usage("give the command after --: det run -- python3 train.py --lr 0.1")
    from shlex import join

    raise Usage(f"write -- before the command: det run -- {join(words)}")


VERBS = (
    Command(
        "run",
        "run a command in the present folder as an experiment, and follow its log",
        "determined_cli.run:run",
        (
            argument("--slots", type=int, metavar="N", help="slots of the trial (default: 1)"),
            argument("--pool", metavar="POOL", help="resource pool (default: that of the cluster)"),
            argument(
                "--config",
                action="append",
                default=[],
                metavar="KEY=VALUE",
                help="a setting of the experiment, for example max_restarts=3 (repeatable)",
            ),
            argument(
                "--outputs",
                action="append",
                default=[],
                metavar="DIR",
                help="folder of the present one whose files are kept when the command ends (repeatable)",
            ),
            argument(
                "-i",
                "--include",
                action="append",
                default=[],
                metavar="PATH",
                help="send another file or folder too (repeatable)",
            ),
            argument("-d", "--detach", action="store_true", help="print the id and do not follow"),
            NO_CODE,
            argument("--local", action="store_true", help="run on this machine, without a master"),
            argument("command", nargs="...", metavar="-- COMMAND", help="program and arguments, which no shell reads"),
        ),
        examples=(
            "det run -- python3 train.py --lr 0.1",
            "det run --slots 2 --pool gpus -- torchrun --nproc-per-node 2 train.py",
            "det run -d --config name=sum -- sh -c 'python3 prepare.py | sort'",
        ),
    ),
)
