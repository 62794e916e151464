"""The command line of the official client: once as a new process, afterwards in forks that need not import it again."""

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support import official_forks

OFFICIAL = Path(os.environ.get("DETENT_OFFICIAL") or Path(__file__).resolve().parents[2] / ".cache" / "official")


class OfficialClient:
    """Runs ``det`` of the official client. The first command is a process of its own, as its users start it."""

    def __init__(self) -> None:
        self._has_started = False
        self._forks: subprocess.Popen[str] | None = None

    def det(
        self, arguments: Sequence[str], environment: dict[str, str], folder: Path, typed: str = "", *, within: float
    ) -> "subprocess.CompletedProcess[str]":
        """Runs one command with this environment and folder. ``typed``: its input; ``within``: seconds."""
        argv = [str(OFFICIAL / "bin" / "det"), *arguments]
        if self._has_started:
            return self._forked(argv, environment, folder, typed, within)
        self._has_started = True
        return subprocess.run(
            argv, env=environment, cwd=folder, input=typed, capture_output=True, text=True, timeout=within, check=False
        )

    def close(self) -> None:
        """Ends the process that has imported the client."""
        if self._forks is not None:
            self._forks.communicate()

    def _forked(
        self, argv: list[str], environment: dict[str, str], folder: Path, typed: str, within: float
    ) -> "subprocess.CompletedProcess[str]":
        forks = self._forks = self._forks or self._started(environment)
        assert forks.stdin is not None
        assert forks.stdout is not None
        with tempfile.TemporaryDirectory() as files:
            paths = [Path(files) / name for name in ("input", "output", "errors")]
            for path, text in zip(paths, (typed, "", ""), strict=True):
                path.write_text(text)
            order = {"argv": argv, "environment": environment, "folder": str(folder), "files": [*map(str, paths)]}
            forks.stdin.write(json.dumps(order) + "\n")
            forks.stdin.flush()
            if not select.select([forks.stdout], [], [], within)[0]:
                forks.kill()
                raise subprocess.TimeoutExpired(argv, within, paths[1].read_bytes(), paths[2].read_bytes())
            code = forks.stdout.readline()
            assert code, f"the process that forks the official client has ended: {forks.wait()}"
            return subprocess.CompletedProcess(argv, int(code), paths[1].read_text(), paths[2].read_text())

    def _started(self, environment: dict[str, str]) -> "subprocess.Popen[str]":
        argv = [str(OFFICIAL / "bin" / "python"), official_forks.__file__]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
