"""Downloads checkpoint files for the workers of a machine, which may share one copy."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from determined.core._all_ranks import run_on_all_ranks
from determined.core._distributed import DistributedContext
from determined.storage.base import Selector, Storage

_WHAT = "the checkpoint was not restored"


def download_shared(
    storage: Storage, peers: DistributedContext, uuid: str, target: Path, selector: Selector | None
) -> None:
    """Copies the files that any worker of the machine selects.

    All workers call it with the same folder; one copies.
    """
    asked = run_on_all_ranks(
        peers, _WHAT, lambda: (os.path.abspath(target), _wanted(storage, uuid, selector)), peers.allgather_local
    )
    folders = sorted({folder for folder, _ in asked})
    if len(folders) > 1:
        raise ValueError(
            f"workers on one machine that share a download must give the same folder, not {', '.join(folders)}; "
            "use DownloadMode.NoSharedDownload for separate folders"
        )
    every = set().union(*(names for _, names in asked))

    def copy() -> None:
        if peers.local_rank == 0:
            storage.download(uuid, target, every.__contains__)

    run_on_all_ranks(peers, _WHAT, copy, peers.allgather_local)


@contextlib.contextmanager
def restored_shared(
    storage: Storage, peers: DistributedContext, uuid: str, selector: Selector | None
) -> Iterator[Path]:
    """Yields one folder with the files that any worker of the machine selects; all workers enter and leave together."""
    asked = run_on_all_ranks(
        peers, _WHAT, lambda: (selector is None, _wanted(storage, uuid, selector)), peers.allgather_local
    )
    everything = any(whole for whole, _ in asked)
    every = set().union(*(names for _, names in asked))
    with contextlib.ExitStack() as first:

        def enter() -> str:
            if peers.local_rank:
                return ""
            return str(first.enter_context(storage.restore_path(uuid, None if everything else every.__contains__)))

        path = run_on_all_ranks(peers, _WHAT, enter, peers.allgather_local)[0]
        try:
            yield Path(path)
        finally:
            peers.gather_local(None)  # the folder is removed only after every worker has left


def _wanted(storage: Storage, uuid: str, selector: Selector | None) -> set[str]:
    return {name for name in storage.resources(uuid) if selector is None or selector(name)}
