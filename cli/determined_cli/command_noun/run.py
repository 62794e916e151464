"""``det command run``: launches a command, prints its log, and returns its exit code."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined.client import commands, submissions
from determined.client.session import Session
from determined.config import yaml_source
from determined.errors import BadRequest, ConfigError, NotImplementedYet
from determined_cli import connection, logs
from determined_cli.reconnect import Reconnector
from determined_cli.terminal.messages import INTERRUPTED, say

if TYPE_CHECKING:
    from determined.context import ContextArchive

FAILED = 1
"""Exit code for a command that ended without one: it was killed, or could not start."""


def run(args: Namespace) -> int:
    """Launches a command. Returns its exit code, or 0 with ``--detach``."""
    if args.template:
        raise NotImplementedYet("templates are not supported yet; remove --template")
    body = {"config": _with_program(configuration(args), args.entrypoint)}
    packed = context(args)
    session = connection.connect(args.options)
    answer = submissions.create(session, body, packed, path=submissions.COMMANDS)
    command = answer["command"]
    if args.detach:
        print(command["id"])
        return 0
    say(f"Launched command {command['id']} ({command['description']})")
    return follow(session, str(command["id"]))


def follow(session: Session, command_id: str) -> int:
    """Prints the log until the command has ended. Returns its exit code. Ctrl-C only stops following."""
    reconnector = Reconnector(session)
    reconnector.connected()  # the command was just launched
    try:
        for line in logs.followed_command(reconnector, command_id, follow=True):
            sys.stdout.write(logs.message(line, short=sys.stdout.isatty()))
            sys.stdout.flush()
        ended = reconnector.call(lambda: commands.get(session, command_id))
    except KeyboardInterrupt:
        say(f"detached; command {command_id} keeps running. To follow it again: det cmd logs -f {command_id}")
        say(f"To stop it: det cmd kill {command_id}")
        return INTERRUPTED
    say(f"command {command_id} ended: {ended.get('exitStatus') or 'unknown'}")
    code = ended.get("exitCode")
    return FAILED if code is None else int(code)


def _with_program(config: dict[str, Any], entrypoint: list[str]) -> dict[str, Any]:
    words = entrypoint[1:] if entrypoint[:1] == ["--"] else entrypoint
    if words:
        config["entrypoint"] = words
    if not config.get("entrypoint"):
        raise BadRequest("give the program to run: det command run PROGRAM [ARGUMENTS]")
    return config


def configuration(args: Namespace) -> dict[str, Any]:
    """Returns the configuration: the file, changed by ``--config`` and ``--volume``."""
    text = _text(args.config_file) if args.config_file else "{}\n"
    if args.config:
        from determined.config.overrides import override

        text = override(text, args.config).text
    source = yaml_source.read(text if text.strip() else "{}\n")
    if source.problems:
        problem = source.problems[0]
        raise ConfigError(f"{args.config_file}:{problem.line}:{problem.column}: {problem.message}")
    config = source.data
    if args.volume:
        mounts = config.get("bind_mounts") or []
        if not isinstance(mounts, list):
            raise ConfigError(f"{args.config_file}: bind_mounts is not a list")
        config["bind_mounts"] = [*mounts, *map(_mount, args.volume)]
    return config


def _text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{name}: {str(reason).lower()}") from None


def _mount(volume: str) -> dict[str, str]:
    host, found, container = volume.partition(":")
    if not found or not host or not container:
        raise BadRequest(f'--volume "{volume}" is not of the form HOST:CONTAINER')
    return {"host_path": host, "container_path": container}


def context(args: Namespace) -> "ContextArchive | None":
    """Returns the packed context; None if there is nothing to send."""
    if args.context is None and not args.include:
        return None
    if args.context is None:
        raise BadRequest("--include needs --context")
    from determined.context import KnownFolders, pack

    packed = pack(Path(args.context), [Path(each) for each in args.include], known=KnownFolders.of_user())
    for note in packed.notes:
        say(note)
    return packed
