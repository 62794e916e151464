"""Runs git on a repository that may be somebody else's: bounded in time and output, without programs that it names."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECONDS = 5.0
"""Time for all commands of one repository together."""
CHUNK_BYTES = 1 << 16
_NEVER = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.bigFileThreshold=8m",  # a larger file is compared as a binary one: a line by line comparison takes minutes
    "diff.autoRefreshIndex=false",  # reads files of equal size before their size is looked at
    "core.pager=cat",
    "diff.external=",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.relative=false",
    "protocol.allow=never",
)
_KEPT = ("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_SET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # older versions fetch what a partial clone lacks
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}


class GitTimeout(Exception):
    """git takes longer than a submission waits for it."""


@dataclass(frozen=True)
class GitOutput:
    """The output of a command; bytes that are no UTF-8 are surrogates, as in names of files.

    ``is_cut``: it is not whole; ``is_late``: because the time was over.
    """

    text: str
    is_cut: bool = False
    is_late: bool = False


class Git:
    """The commands of one folder, which share :data:`SECONDS`."""

    def __init__(self, program: str, folder: Path, environ: Mapping[str, str], seconds: float = SECONDS) -> None:
        self._start = [program, "--no-pager"]
        for setting in _NEVER:
            self._start += ["-c", setting]
        self._folder = folder
        self._environ = {key: value for key, value in environ.items() if not key.startswith("GIT_") or key in _KEPT}
        self._environ.update(_SET)
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def disable_filters(self, settings: Mapping[str, str]) -> None:
        """Turns off the filters of ``settings`` (by name), which are programs that git would run on changed files.

        Raises ValueError for a name that cannot be written on the command line.
        """
        for name in {each.rpartition(".")[0] for each in settings if each.startswith("filter.")}:
            if "=" in name:
                raise ValueError(f"the filter {name} cannot be turned off")
            for setting in ("clean=", "process=", "smudge=", "required=false"):
                self._start += ["-c", f"{name}.{setting}"]

    def read(self, *words: str, most: int, is_cut_at_deadline: bool = False) -> GitOutput | None:
        """Returns the first ``most`` bytes that the command prints; None if it fails.

        git is ended as soon as it prints more. Raises GitTimeout at the deadline, unless ``is_cut_at_deadline``, and
        OSError if git cannot be started.
        """
        process = subprocess.Popen(
            [*self._start, *words],
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            data, is_late = self._drain(process.stdout.fileno(), most)
            is_cut = is_late or len(data) > most
            if is_late and not is_cut_at_deadline:
                raise self._timeout(words)
            if not is_cut and self._code_of(process, words) != 0:
                return None
        finally:
            _end(process)
        return GitOutput(data[:most].decode(errors="surrogateescape"), is_cut, is_late)

    def _drain(self, descriptor: int, most: int) -> tuple[bytes, bool]:
        """Returns up to a chunk more than ``most`` bytes, and True if the deadline has passed before the end."""
        data = bytearray()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while len(data) <= most:
            left = self._deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                return bytes(data), True
            chunk = os.read(descriptor, CHUNK_BYTES)
            if not chunk:
                break
            data += chunk
        return bytes(data), False

    def _code_of(self, process: subprocess.Popen[bytes], words: tuple[str, ...]) -> int:
        try:
            return process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._timeout(words) from None

    def _timeout(self, words: tuple[str, ...]) -> GitTimeout:
        return GitTimeout(f"git {words[0]} took longer than {self._seconds:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends git and what it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
