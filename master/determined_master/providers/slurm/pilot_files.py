"""The files of pilots, in a folder that the master and the nodes see: token, certificate, script, output. Blocking."""

import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from determined_launch.atomic_file import write_atomic

OUTPUT, SCRIPT = "pilot.log", "pilot.sh"
TOKEN, CERTIFICATE = "agent-token", "master.crt"
KEPT_SECONDS = 7 * 86400.0
"""Time for which the files of a pilot are kept that ended by itself, for whoever looks for the cause."""
MAX_LINE_BYTES = 4096


def default_folder(environment: dict[str, str]) -> Path:
    """Returns the folder where a pool names none. Homes are what the nodes of a cluster usually share."""
    home = environment.get("XDG_DATA_HOME") or os.path.join(environment.get("HOME") or "/", ".local", "share")
    return Path(home) / "detent" / "slurm"


class PilotFiles:
    """The files of one cluster's pilots below one folder."""

    def __init__(self, root: Path, cluster_id: str) -> None:
        self._root = root / cluster_id

    def of(self, agent_id: str) -> Path:
        """Returns the folder of one pilot."""
        return self._root / "pilots" / agent_id

    def share(self, token_file: Path, certificate: Path | None) -> tuple[Path, Path | None]:
        """Copies what agents need to join, readable for this account alone, and returns the copies."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root.chmod(0o700)
        token, copy = self._root / TOKEN, self._root / CERTIFICATE
        _copy(token_file, token)
        if certificate is None:
            return token, None
        _copy(certificate, copy)
        return token, copy

    def write(self, agent_id: str, script: str) -> Path:
        """Writes the script of a pilot and returns its path."""
        folder = self.of(agent_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(folder / SCRIPT, script)
        return folder / SCRIPT

    def last_line(self, agent_id: str) -> str:
        """Returns the last line that a pilot printed, without control characters."""
        try:
            with (self.of(agent_id) / OUTPUT).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LINE_BYTES))
                lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError:
            return ""
        return "".join(c for c in lines[-1].strip()[-500:] if c.isprintable()) if lines else ""

    def remove(self, agent_id: str) -> None:
        shutil.rmtree(self.of(agent_id), ignore_errors=True)

    def remove_old(self, known: Collection[str]) -> None:
        """Removes the folders of pilots that ended long ago."""
        try:
            folders = list((self._root / "pilots").iterdir())
        except OSError:
            return
        for folder in folders:
            if folder.name not in known and time.time() - _changed(folder) > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    content = source.read_text()
    try:
        if target.read_text() == content:
            return
    except OSError:
        pass
    write_atomic(target, content)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
