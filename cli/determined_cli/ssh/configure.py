"""``det ssh-config``: writes what OpenSSH needs to enter tasks, and removes it."""

import os
import pwd
import shlex
import sys
from argparse import Namespace
from pathlib import Path

from determined.errors import BadRequest
from determined_cli import connection
from determined_cli.ssh import files, proxy
from determined_cli.terminal.messages import say

_TEMPLATE = """\
# Written by `det ssh-config`, which writes all of it anew. `det ssh-config --remove` removes it.
Host {patterns}
    ProxyCommand {command}
    IdentityFile {key}
    IdentitiesOnly yes
    UserKnownHostsFile {known_hosts}
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    HostKeyAlgorithms ssh-ed25519
    UpdateHostKeys no
    ForwardAgent no
    ForwardX11 no
"""


def run(args: Namespace) -> int | None:
    """Writes, removes, or passes a connection on."""
    if args.connect:
        if args.remove:
            raise BadRequest("--remove and --connect exclude each other")
        return proxy.run(args.options, args.connect)
    place = files.SshFiles(Path.home() / ".ssh")
    if args.remove:
        place.remove()
        print("ssh knows the tasks of the cluster no longer")
        return None
    session = connection.connect(args.options)
    session.get("/api/v1/me")
    place.make_key()
    words = [sys.executable, "-m", "determined_cli", "-m", session.master]
    if args.options.user:
        words += ["-u", args.options.user]
    command = f"{shlex.join(words).replace('%', '%%')} ssh-config --connect '%n'"
    place.write(
        _TEMPLATE.format(
            patterns=" ".join(f"{prefix}*" for prefix in proxy.PREFIXES),
            command=command,
            key=_quoted(place.key),
            known_hosts=_quoted(place.known_hosts),
        )
    )
    print(f"ssh, scp, rsync and editors enter tasks of {session.master} now: ssh det-trial-ID, ssh det-task-ID")
    if place.home != _folder_of_ssh():
        say(f"det: HOME is not the folder in which ssh looks; use `ssh -F {place.home / 'config'}`")
    return None


def _folder_of_ssh() -> Path | None:
    """Returns the folder in which ssh looks; None for a uid without an account, as in some containers."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"
    except KeyError:
        return None


def _quoted(path: Path) -> str:
    """Returns a path as a word of OpenSSH's configuration. Raises BadRequest for one that it cannot express."""
    text = str(path)
    if '"' in text or "\n" in text:
        raise BadRequest(f"ssh cannot read files at {text!r}")
    return f'"{text.replace("%", "%%")}"'
