"""Runs a worker, puts ``[rank=N] `` in front of each line of its output and records how it ended.

``python3 -m determined_launch.wrap_rank RANK_VARIABLE[,OTHER…] -- program args…``
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from determined_launch import environment, process

KEPT_LINES = 20
LINE_LIMIT = 8192
DRAIN_SECONDS = 2.0  # a grandchild may hold the pipe open after the worker has ended

_ENDS = re.compile(rb"\r\n|\n|\r")


class Prefixer:
    """Cuts a byte stream into lines at newlines and carriage returns and gives each its prefix."""

    def __init__(self, rank: int) -> None:
        self._prefix = f"[rank={rank}] ".encode()
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, each with its end; an overlong one is cut."""
        text = self._rest + data
        lines, begin = [], 0
        for end in _ENDS.finditer(text):
            if end.group() == b"\r" and end.end() == len(text):
                break  # the newline of a "\r\n" may still come
            lines.append(self._prefix + text[begin : end.start()] + (b"\r" if end.group() == b"\r" else b"\n"))
            begin = end.end()
        self._rest = text[begin:]
        limit = LINE_LIMIT - len(self._prefix) - 1
        while len(self._rest) > limit:
            lines.append(self._prefix + self._rest[:limit] + b"\n")
            self._rest = self._rest[limit:]
        return lines

    def close(self) -> list[bytes]:
        """What is left at the end of the stream, as a line."""
        rest, self._rest = self._rest, b""
        if not rest:
            return []
        return [self._prefix + rest.removesuffix(b"\r") + b"\n"]


def find_rank(names: str, environ: Mapping[str, str]) -> int:
    """A number, or the first set variable of a comma list; 0 where none is set."""
    if names.isdigit():
        return int(names)
    return next((int(environ[name]) for name in names.split(",") if environ.get(name)), 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the worker; its exit code is returned."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) < 3 or words[1] != "--":
        print("usage: wrap_rank RANK_VARIABLE -- program args…", file=sys.stderr)
        return 2
    environ = environment.current()
    rank = find_rank(words[0], environ)
    try:
        child = subprocess.Popen(words[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        return process.start_failure(words[2:], error)
    last: deque[str] = deque(maxlen=KEPT_LINES)
    assert child.stdout is not None
    assert child.stderr is not None
    pumps = [
        threading.Thread(target=_pump, args=(source, target, rank, last), daemon=True)
        for source, target in ((child.stdout, sys.stdout.buffer), (child.stderr, sys.stderr.buffer))
    ]
    for pump in pumps:
        pump.start()
    with process.forwarding(child.send_signal):
        status = child.wait()
    for pump in pumps:
        pump.join(DRAIN_SECONDS)
    _record(environ, rank, status, list(last))
    return process.exit_code(status)


def _pump(source: BinaryIO, target: BinaryIO, rank: int, last: "deque[str]") -> None:
    prefixer = Prefixer(rank)
    number = source.fileno()
    while True:
        data = os.read(number, 65536)
        lines = prefixer.feed(data) if data else prefixer.close()
        if lines:
            target.write(b"".join(lines))
            target.flush()
            last.extend(line.decode("utf-8", "replace").rstrip("\r\n") for line in lines[-KEPT_LINES:])
        if not data:
            return


def _record(environ: Mapping[str, str], rank: int, status: int, last: list[str]) -> None:
    """Best effort: a full disk must not change how the worker's end is seen."""
    folder = Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), "exits")
    value = {
        "rank": rank,
        "code": process.exit_code(status),
        "signal": signal.Signals(-status).name if status < 0 else None,
        "host": socket.gethostname(),
        "last_lines": last,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"rank-{rank}.json").write_text(json.dumps(value), encoding="utf-8")
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main())
