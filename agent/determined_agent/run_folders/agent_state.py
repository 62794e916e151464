"""State that survives a restart of the agent: its id, the newest master epoch, and its run folders."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

from determined.errors import DeterminedError
from determined.link.run_folder import RunFolder
from determined_agent.host_access.access import ClusterFolders
from determined_agent.run_folders.tree_removal import remove_tree
from determined_launch.atomic_file import write_atomic
from determined_launch.pid_lock import LockHeld, PidLock

GONE = ".gone-"
"""Name prefix of run folders that are being removed."""


class FolderInUse(DeterminedError):
    """Raised if another agent uses this data folder."""


class AgentState:
    """The agent's data folder; one agent at a time holds it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.runs = data / "runs"
        self._file = data / "agent.json"
        self.runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._lock = PidLock(data / "agent.lock")
        except LockHeld as error:
            raise FolderInUse(f"{data} is in use by another agent (pid {error.pid or 'unknown'})") from None
        try:
            kept = json.loads(self._file.read_text())
        except (OSError, ValueError):
            kept = {}
        self.agent_id = str(kept.get("agent_id", ""))
        self.cluster_id = str(kept.get("cluster_id", ""))
        self.master_epoch = int(kept.get("master_epoch", 0))
        self.folder_id = str(kept.get("folder_id", "")) or uuid.uuid4().hex
        """Tells this folder from that of another agent with the same id."""
        self._kept_folder_id = str(kept.get("folder_id", ""))
        self.cluster_folders = ClusterFolders(
            tuple(map(str, kept.get("storage_folders") or ())), str(kept.get("master_folder", ""))
        )
        """What the master said last; containers are prepared before an agent that was restarted hears it again."""

    def name(self, agent_id: str) -> None:
        """Sets the agent's id."""
        if agent_id != self.agent_id or self._kept_folder_id != self.folder_id:
            self.agent_id = agent_id
            self._keep()

    def obey(self, cluster_id: str, master_epoch: int, folders: ClusterFolders = ClusterFolders()) -> bool:
        """Records a master's epoch and folders. Returns False if a newer epoch of the same cluster was seen."""
        if cluster_id == self.cluster_id and master_epoch < self.master_epoch:
            return False
        if (cluster_id, master_epoch, folders) != (self.cluster_id, self.master_epoch, self.cluster_folders):
            self.cluster_id, self.master_epoch, self.cluster_folders = cluster_id, master_epoch, folders
            self._keep()
        return True

    def folder(self, container_id: str) -> RunFolder:
        """Returns the run folder of a container. Raises ValueError for an id that is not a plain name."""
        if not container_id or container_id.startswith(".") or "/" in container_id or "\0" in container_id:
            raise ValueError(f"invalid container ID: {container_id!r}")
        return RunFolder(self.runs / container_id)

    def folders(self) -> Iterator[RunFolder]:
        """Yields every run folder with a record; removes folders whose creation stopped before the record."""
        for path in sorted(self.runs.iterdir()):
            folder = RunFolder(path)
            if folder.record.exists() and not path.name.startswith(GONE):
                yield folder
            else:
                remove_tree(path)

    def discard(self, folder: RunFolder) -> Path:
        """Renames a run folder atomically to a trash name; returns the new path, which is still to be removed."""
        grave = folder.path.with_name(f"{GONE}{folder.path.name}")
        folder.path.rename(grave)
        return grave

    def close(self) -> None:
        self._lock.close()

    def _keep(self) -> None:
        kept = {
            "agent_id": self.agent_id,
            "cluster_id": self.cluster_id,
            "master_epoch": self.master_epoch,
            "folder_id": self.folder_id,
            "storage_folders": self.cluster_folders.storage,
            "master_folder": self.cluster_folders.data,
        }
        write_atomic(self._file, json.dumps(kept))
        self._kept_folder_id = self.folder_id
