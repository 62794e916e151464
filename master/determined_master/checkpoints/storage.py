"""Where the files of a checkpoint lie."""

from pathlib import Path
from typing import Any

from determined.errors import BadRequest


def folder_of(storage: dict[str, Any], uuid: str) -> Path:
    """For storage that this machine sees. Raises BadRequest for other kinds."""
    if storage.get("type") == "shared_fs":
        root = Path(storage["host_path"])
        below = storage.get("storage_path") or storage.get("checkpoint_path")
        return root / below / uuid if below else root / uuid
    if storage.get("type") == "directory":
        return Path(storage["container_path"]) / uuid
    raise BadRequest(f"checkpoints in {storage.get('type')} storage are not reached by this master")
