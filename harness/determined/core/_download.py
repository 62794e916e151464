"""Checkpoint files for the workers of a machine, who may share one copy."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from determined.core._all_or_none import together
from determined.core._distributed import DistributedContext
from determined.storage.base import Selector, Storage

_WHAT = "the checkpoint is not read"


def download_shared(
    storage: Storage, peers: DistributedContext, uuid: str, target: Path, selector: Selector | None
) -> None:
    """All workers of the machine call with the same folder; one of them copies what any of them wants."""
    asked = together(
        peers, _WHAT, lambda: (os.path.abspath(target), _wanted(storage, uuid, selector)), peers.allgather_local
    )
    folders = sorted({folder for folder, _ in asked})
    if len(folders) > 1:
        raise ValueError(
            f"workers of one machine that share a download name one folder, not {', '.join(folders)}; "
            "for a folder each use DownloadMode.NoSharedDownload"
        )
    every = set().union(*(names for _, names in asked))

    def copy() -> None:
        if peers.local_rank == 0:
            storage.download(uuid, target, every.__contains__)

    together(peers, _WHAT, copy, peers.allgather_local)


@contextlib.contextmanager
def restored(storage: Storage, uuid: str, selector: Selector | None) -> Iterator[Path]:
    """This worker's own folder with what the selector wants."""
    with storage.restore_path(uuid) as path:
        if selector is None:
            yield path
            return
        with _view(path, _wanted(storage, uuid, selector)) as seen:
            yield seen


@contextlib.contextmanager
def restored_shared(
    storage: Storage, peers: DistributedContext, uuid: str, selector: Selector | None
) -> Iterator[Path]:
    """One folder for all workers of the machine with what any of them wants; they enter and leave together."""
    asked = together(peers, _WHAT, lambda: (selector is None, _wanted(storage, uuid, selector)), peers.allgather_local)
    everything = any(whole for whole, _ in asked)
    every = set().union(*(names for _, names in asked))
    with contextlib.ExitStack() as first:

        def enter() -> str:
            if peers.local_rank:
                return ""
            path = first.enter_context(storage.restore_path(uuid))
            return str(path if everything else first.enter_context(_view(path, every)))

        path = together(peers, _WHAT, enter, peers.allgather_local)[0]
        try:
            yield Path(path)
        finally:
            peers.gather_local(None)  # the folder may go when the last has left


@contextlib.contextmanager
def _view(folder: Path, names: set[str]) -> Iterator[Path]:
    """A folder of links to the named files: nothing is copied, and nothing else is seen."""
    made = Path(tempfile.mkdtemp(prefix="determined-restore-"))
    try:
        for name in sorted(names):
            if name.endswith("/"):
                (made / name).mkdir(parents=True, exist_ok=True)
            else:
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                os.symlink(os.path.abspath(folder / name), made / name)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _wanted(storage: Storage, uuid: str, selector: Selector | None) -> set[str]:
    return {name for name in storage.resources(uuid) if selector is None or selector(name)}
