"""A checkpoint of several workers: each fills a folder of its own, and all parts or none become the checkpoint."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from determined.core._all_ranks import run_on_all_ranks
from determined.core._distributed import DistributedContext
from determined.core._shard_merge import NOT_STORED, Claim, settle
from determined.errors import StorageError
from determined.storage.base import HASHES_FILE, Finish, Selector, Storage
from determined.storage.directory import copy
from determined.storage.folder_listing import tree, warn_of_left_out
from determined.storage.hashes import written

_SECONDS_TO_SEE = 10.0


class Shard:
    """One worker's part of a checkpoint: files written into ``folder``, or copied from a folder of the user."""

    def __init__(self, folder: Path, peers: DistributedContext) -> None:
        self.folder = folder
        self._peers = peers
        self._given: Path | None = None
        self._names: dict[str, int] = {}

    def take(self, source: Path, selector: Selector | None) -> None:
        """Stores the selected files of ``source``, which stays unchanged."""
        self._given = source
        warn_of_left_out(source)
        found = tree(source)
        self._names = {name: size for name, size in found.items() if selector is None or selector(name)}

    def claim(self) -> Claim:
        """Returns the files of this worker."""
        if self._given is None:
            warn_of_left_out(self.folder)
            return Claim(tree(self.folder), (self._peers.rank,))
        # folders of two machines may have the same device and inode numbers
        status = os.stat(self._given)
        return Claim(self._names, (self._peers.cross_rank, status.st_dev, status.st_ino))

    @property
    def source(self) -> Path:
        """Returns the folder that contains the files."""
        return self.folder if self._given is None else self._given

    def move(self, names: list[str], target: Path) -> None:
        """Places the named files, and removes the folder of this worker: the chief looks at all that is left."""
        self.place(names, target)
        shutil.rmtree(self.folder, ignore_errors=True)

    def place(self, names: list[str], target: Path) -> None:
        """Moves the named files into the checkpoint and syncs them to disk; each worker moves its own files."""
        for name in names:
            here, there = self.source / name, target / name
            if self._given is not None or name.endswith("/"):
                copy(here, there)
            else:
                there.parent.mkdir(parents=True, exist_ok=True)
                os.rename(here, there)
            if not name.endswith("/"):
                with there.open("rb") as file:
                    os.fsync(file.fileno())


@contextlib.contextmanager
def storing(
    storage: Storage, peers: DistributedContext, uuid: str, finish: Finish, report: Callable[[], object]
) -> Iterator[Shard]:
    """Stores one checkpoint from all workers, which enter and leave together. An error on one worker raises on all.

    The chief opens the checkpoint, finishes it and reports it.
    """
    with contextlib.ExitStack() as chief:
        opened = run_on_all_ranks(
            peers,
            NOT_STORED,
            lambda: str(chief.enter_context(storage.store_path(uuid, finish))) if peers.rank == 0 else "",
        )
        target, upload = Path(opened[0]), storage.upload_part
        shard = Shard(target / f".rank-{peers.rank}" if upload is None else Path(tempfile.mkdtemp()), peers)
        failure: BaseException | None = None
        try:
            try:
                _make(shard.folder)
                yield shard
            except BaseException as error:
                failure = error
            claims = run_on_all_ranks(peers, NOT_STORED, lambda: _claim(shard, failure))
            mine, every = settle(peers, shard.source, claims)
            if upload is None:
                run_on_all_ranks(peers, NOT_STORED, lambda: shard.move(mine, target))
                run_on_all_ranks(
                    peers, NOT_STORED, lambda: wait_until_visible(target, every) if peers.rank == 0 else None
                )
            else:
                found = run_on_all_ranks(peers, NOT_STORED, lambda: upload(uuid, shard.source, mine))
                if peers.rank == 0:
                    hashes = {name: value for part in found for name, value in part.items()}
                    (target / HASHES_FILE).write_bytes(written(hashes))
        finally:
            shutil.rmtree(shard.folder, ignore_errors=True)
        run_on_all_ranks(peers, NOT_STORED, lambda: chief.close() if peers.rank == 0 else None)
    run_on_all_ranks(peers, "the checkpoint was stored but not reported", lambda: report() if peers.rank == 0 else None)


def _claim(shard: Shard, failure: BaseException | None) -> Claim:
    if failure is not None:
        raise failure
    return shard.claim()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise StorageError(
            f"{folder.parent}, created by the chief, is missing on this machine: checkpoint storage is not shared"
        ) from None


def wait_until_visible(target: Path, expected: dict[str, int]) -> None:
    """Waits until the files of other machines are visible; a network file system may show them late."""
    deadline = time.monotonic() + _SECONDS_TO_SEE
    while True:
        try:
            found = tree(target)
        except FileNotFoundError:  # the folder of another worker, whose end this machine sees late
            found = {}
        missing = sorted(name for name, size in expected.items() if found.get(name) != size)
        if not missing:
            return
        if time.monotonic() > deadline:
            raise StorageError(f"the chief does not find what other workers stored: {', '.join(missing[:5])}")
        time.sleep(0.1)
