"""The program ``ssh`` for a launcher whose containers communicate over the command channel.

``python3 -m determined_launch.channel.remote_shell RUN_FOLDER [ssh options] HOST COMMAND…``
"""

import json
import os
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from determined_launch import worker_environment
from determined_launch.channel import client, frames
from determined_launch.channel.frames import Closed, Connection

UNREACHABLE = 255
"""Exit code of ssh itself if it cannot reach the host."""
_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def write(run: Path, hosts: Mapping[str, tuple[str, int]], python: str) -> Path:
    """Writes the program and its list of hosts; returns the folder for the launcher's PATH."""
    folder = run / "info" / "remote-shell"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.json").write_text(json.dumps(hosts), encoding="utf-8")
    package = Path(__file__).resolve().parents[2]
    program = folder / "ssh"
    words = [f"PYTHONPATH={shlex.quote(str(package))}", "exec", shlex.quote(python), "-m"]
    program.write_text(f'#!/bin/sh\n{" ".join(words)} {__name__} {shlex.quote(str(run))} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return folder


def main(argv: Sequence[str]) -> int:
    """Runs the remote command and returns its exit code; 255 if the host cannot be reached."""
    run, words = argv[0], list(argv[1:])
    host, command = split(words)
    if host is None or not command:
        print("ssh: give a host and a command", file=sys.stderr)
        return UNREACHABLE
    try:
        address, port = _find(host, json.loads(Path(run, "info", "remote-shell", "hosts.json").read_text()))
        key = bytes.fromhex(worker_environment.read_key(run))
        request = {"verb": "run", "command": " ".join(command)}
        connection = client.connect(address, port, key, request, patience=10.0)
    except (OSError, LookupError) as error:
        print(f"ssh: {error.args[-1] if error.args else error}", file=sys.stderr, flush=True)
        return UNREACHABLE
    return _stream(connection)


def split(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Returns host and command of an ssh line, which may have options before and after the host."""
    host: str | None = None
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        if word == "--":
            continue
        if word.startswith("-") and len(word) > 1:
            if word[-1] in _WITH_VALUE and len(word) == 2:
                index += 1
        elif host is None:
            host = word.rpartition("@")[2]
        else:
            return host, list(words[index - 1 :])
    return host, []


def _find(host: str, hosts: Mapping[str, Sequence[object]]) -> tuple[str, int]:
    """Returns address and port of a host, found by its name or by an address that the name resolves to."""
    host_entry = hosts.get(host)
    if host_entry is None:
        try:
            numbers = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
        except OSError:
            numbers = set()
        host_entry = next((value for value in hosts.values() if value[0] in numbers), None)
    if host_entry is None:
        raise LookupError(f"{host} is not a container of this allocation; its containers are: {', '.join(hosts)}")
    return str(host_entry[0]), int(str(host_entry[1]))


def _stream(connection: Connection) -> int:
    def forward(number: int, _frame: FrameType | None) -> None:
        # sends in another thread because the handler may have interrupted a send
        threading.Thread(target=_send_signal, args=(connection, number), daemon=True).start()

    for number in _FORWARDED:
        signal.signal(number, forward)
    try:
        while True:
            kind, body = connection.receive()
            if kind == frames.EXIT:
                return int(json.loads(body)["code"])
            if kind in (frames.STDOUT, frames.STDERR):
                os.write(1 if kind == frames.STDOUT else 2, body)
    except BrokenPipeError:
        return UNREACHABLE
    except Closed as error:
        print(f"ssh: lost the connection to the container: {error}", file=sys.stderr, flush=True)
        return UNREACHABLE
    finally:
        connection.close()


def _send_signal(connection: Connection, number: int) -> None:
    try:
        connection.send_json(frames.SIGNAL, {"signal": number})
    except Closed:
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
