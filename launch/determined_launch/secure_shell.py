"""``launch.remote_shell: ssh``: a real sshd in each container, for launchers that need one.

Keys are generated for each run. The containers exchange the chief's public key and their host keys over the command
channel, so both ends are known before the first connection: no password, no unknown host.
"""

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from determined_launch import worker_environment
from determined_launch.channel import frames
from determined_launch.channel.frames import Connection
from determined_launch.errors import LaunchError

SYSTEM_FOLDERS = "/usr/sbin:/usr/local/sbin:/sbin"
_START_SECONDS = 10.0
_PRIVILEGE_SEPARATION = "/run/sshd"  # Debian's sshd needs this folder if root starts it


class Sshd:
    """The request ``sshd``: starts an sshd that accepts only the chief's key, and returns its host key."""

    def __init__(self, run: Path, address: str, port: int) -> None:
        self._program = find("sshd", "openssh-server")
        self._folder = _folder(run)
        self._run = run
        self._address = address
        self._port = port
        _make_key(self._folder / "host_key")

    def __call__(self, connection: Connection, request: Mapping[str, Any]) -> None:
        (self._folder / "authorized_keys").write_text(f"{request.get('public_key', '')}\n", encoding="utf-8")
        config = self._folder / "sshd_config"
        config.write_text(self._config(), encoding="utf-8")
        if os.geteuid() == 0:
            Path(_PRIVILEGE_SEPARATION).mkdir(mode=0o755, parents=True, exist_ok=True)
        subprocess.Popen([self._program, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL)
        _wait_for(self._address, self._port)
        key = (self._folder / "host_key.pub").read_text(encoding="utf-8").strip()
        connection.send_json(frames.ANSWER, {"host_key": key})

    def _config(self) -> str:
        lines = {
            "Port": self._port,
            "ListenAddress": self._address,
            "HostKey": _quoted(self._folder / "host_key"),
            "AuthorizedKeysFile": _quoted_pattern(self._folder / "authorized_keys"),
            "SetEnv": _quoted(f"{worker_environment.MARK}={self._run}"),
            "PidFile": "none",
            "LogLevel": "ERROR",
            "UsePAM": "no",
            "StrictModes": "no",
            "PubkeyAuthentication": "yes",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "AllowTcpForwarding": "no",
            "AllowAgentForwarding": "no",
            "X11Forwarding": "no",
            "PrintMotd": "no",
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())


def make_key(run: Path) -> str:
    """Generates the chief's key pair of this run; returns the public key."""
    return _make_key(_folder(run) / "id")


def write(run: Path, hosts: Mapping[str, tuple[str, int]], keys: Sequence[str]) -> Path:
    """Writes the program ``ssh`` with the known host keys; returns the folder for the launcher's PATH."""
    ssh, folder = find("ssh", "openssh-client"), _folder(run)
    known, config = [], []
    for (name, (address, port)), key in zip(hosts.items(), keys, strict=True):
        known.append(f"{name} {' '.join(key.split()[:2])}\n")
        config.append(f"Host {name}\n  HostName {address}\n  Port {port}\n  HostKeyAlias {name}\n")
    config.append(
        f"Host *\n  IdentityFile {_quoted_pattern(folder / 'id')}\n  IdentitiesOnly yes\n  BatchMode yes\n"
        f"  UserKnownHostsFile {_quoted_pattern(folder / 'known_hosts')}\n  GlobalKnownHostsFile /dev/null\n"
        "  UpdateHostKeys no\n  LogLevel ERROR\n  ServerAliveInterval 15\n"
    )
    (folder / "known_hosts").write_text("".join(known), encoding="utf-8")
    (folder / "config").write_text("".join(config), encoding="utf-8")
    programs = run / "info" / "remote-shell"
    programs.mkdir(parents=True, exist_ok=True)
    program = programs / "ssh"
    # ssh uses the first value of an option, and horovodrun disables host key checks
    strict = f"-F {shlex.quote(str(folder / 'config'))} -o StrictHostKeyChecking=yes"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(ssh)} {strict} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return programs


def find(program: str, package: str) -> str:
    """Returns the path of a program. Raises LaunchError with the package to install."""
    path = shutil.which(program) or shutil.which(program, path=SYSTEM_FOLDERS)
    if path is None:
        raise LaunchError(
            f"launch.remote_shell: ssh needs the program {program}, which is not installed "
            f"(Debian, Ubuntu: apt-get install {package}); remove the setting to run without a remote shell"
        )
    return path


def _folder(run: Path) -> Path:
    folder = run / "info" / "ssh"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _quoted(value: object) -> str:
    """Returns a value as one word of a configuration of OpenSSH: the path of a run may have spaces."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _quoted_pattern(path: Path) -> str:
    """Returns the path as the value of an option in which OpenSSH replaces ``%h`` and the like."""
    return _quoted(str(path).replace("%", "%%"))


def _make_key(path: Path) -> str:
    keygen = find("ssh-keygen", "openssh-client")
    for old in (path, path.with_name(f"{path.name}.pub")):
        old.unlink(missing_ok=True)
    subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-C", "detent", "-f", str(path)], check=True)
    return path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").strip()


def _wait_for(address: str, port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                return  # the caller's connection fails, and sshd has logged the reason
            time.sleep(0.05)
