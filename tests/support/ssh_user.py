"""OpenSSH as a user of ``det ssh-config`` calls it, with a home folder of the test."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tests.support.terminal_program import TerminalProgram


class Running(NamedTuple):
    """An ssh that runs, and its pipes."""

    process: "subprocess.Popen[bytes]"
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class SshUser:
    """Runs ssh, scp and rsync with the configuration below ``home``."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.folder = home / ".ssh"
        self.environment = environment

    @property
    def _config(self) -> list[str]:
        return ["-F", str(self.folder / "config")]

    def ssh(self, *words: str, input: bytes = b"", within: float = 60) -> subprocess.CompletedProcess[bytes]:
        return self._run(["ssh", *self._config, *words], input, within)

    def scp(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self._run(["scp", *self._config, *words])

    def rsync(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self._run(["rsync", "-e", f"ssh -F {self.folder / 'config'}", *words])

    @contextmanager
    def running(self, *words: str) -> "Iterator[Running]":
        """Yields ssh while it runs, and ends it."""
        pipe = subprocess.PIPE
        argv = ["ssh", *self._config, *words]
        with subprocess.Popen(argv, env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                yield Running(process, process.stdin, process.stdout, process.stderr)
            finally:
                process.kill()

    def on_terminal(self, *words: str) -> TerminalProgram:
        return TerminalProgram(["ssh", *self._config, *words], {**self.environment, "TERM": "xterm-256color"})

    def _run(self, argv: Sequence[str], input: bytes = b"", within: float = 60) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, env=self.environment, input=input, capture_output=True, check=False, timeout=within)
