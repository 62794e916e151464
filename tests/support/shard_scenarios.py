"""Runs in each of four workers on two machines: scenarios of sharded checkpoints.

Arguments: a ``checkpoint_storage`` section as JSON and a scratch folder. Writes a line ``OUT`` + JSON of scenario →
result or error.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from determined import core
from determined.core import _sharding
from determined.core._checkpoint import DummyCheckpointContext
from determined.storage import from_config
from determined.storage.bucket_access import bucket_of, open_filesystem

CONFIG, SCRATCH = json.loads(sys.argv[1]), Path(sys.argv[2])
BUCKET = bucket_of(CONFIG)
STORE = Path(CONFIG.get("container_path", "/nowhere"))
peers = core.DistributedContext.from_torch_distributed()
rank, me = peers.rank, f"rank-{peers.rank}"
reported = []


class Context(DummyCheckpointContext):
    failure = None
    """Error that reports raise."""

    def swap_storage(self, storage):
        """Returns the storage that was used before."""
        self._storage, former = storage, self._storage
        return former

    def _report(self, uuid, metadata):
        if self.failure is not None:
            raise self.failure
        reported.append([uuid, metadata])


checkpoint = Context(from_config(CONFIG, {}), peers)
STEPS = {"steps_completed": 1}


def own(**files):
    """Returns a new folder of this worker with ``files``."""
    folder = SCRATCH / f"{me}-{len(list(SCRATCH.glob(f'{me}-*')))}"
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def in_bucket():
    """Returns the keys of all objects without the path of the bucket."""
    return [key[len(BUCKET.root) + 1 :] for key in open_filesystem(CONFIG).find(BUCKET.root)]


def stored(uuid):
    if BUCKET:
        files = open_filesystem(CONFIG)
        keys = [key for key in in_bucket() if key.startswith(uuid)]
        return {key.partition("/")[2]: files.cat_file(f"{BUCKET.root}/{key}").decode() for key in keys}
    return {p.relative_to(STORE / uuid).as_posix(): p.read_text() for p in (STORE / uuid).rglob("*") if p.is_file()}


def data_files(uuid):
    return {name: text for name, text in stored(uuid).items() if not name.startswith((".hashes", "metadata"))}


def write(metadata=STEPS, **files):
    with checkpoint.store_path(metadata, shard=True) as (path, uuid):
        for name, text in files.items():
            target = path / name.replace("__", "/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    return uuid


def a_file_each():
    uuid = write(metadata={**STEPS, "by": {me: rank}}, **{f"{me}.bin": me, "sub__same": "same"})
    peers.allgather(None)
    return [data_files(uuid), json.loads(stored(uuid)["metadata.json"]), len(reported)]


def different_content():
    return write(shared="x" if rank != 2 else "y", fine="1")


def different_size():
    return write(shared="x" * (rank + 1))


def file_and_folder():
    return write(**({"a": "x"} if rank == 1 else {"a__b": "x"}))


def one_fails():
    with checkpoint.store_path(STEPS, shard=True) as (path, _):
        (path / "half").write_text("x")
        if rank in (1, 3):
            raise ZeroDivisionError("by rank")


def metadata_conflict():
    return write(metadata={**STEPS, "note": {"seed": 1 if rank < 3 else 2}})


def metadata_not_json():
    return write(metadata={**STEPS, "odd": object()} if rank == 1 else STEPS)


def no_steps():
    return write(metadata={"a": 1})


def uploaded():
    folder = None if rank == 3 else own(**{f"{me}.bin": me, "skipped.tmp": me})
    uuid = checkpoint.upload(folder, STEPS, shard=True, selector=lambda name: not name.endswith(".tmp"))
    peers.allgather(None)
    return data_files(uuid)


def uploaded_from_one_folder():
    """Uploads different files of one folder from both workers of machine 0."""
    shared = SCRATCH / "shared"
    if rank == 0:
        own_files = {"zero": "0", "one": "1", "two": "2"}
        shared.mkdir()
        for name, text in own_files.items():
            (shared / name).write_text(text)
    peers.allgather(None)
    folder = shared if peers.cross_rank == 0 else None
    uuid = checkpoint.upload(folder, STEPS, shard=True, selector=lambda name: name == ("zero", "one")[rank % 2])
    peers.allgather(None)
    return data_files(uuid)


class Twins:
    """Gives the folders of two machines the same device and inode numbers."""

    def stat(self, path):
        return SimpleNamespace(st_dev=1, st_ino=1)

    def __getattr__(self, name):
        return getattr(os, name)


def same_numbers_on_two_machines():
    _sharding.os = Twins()
    try:
        return checkpoint.upload(own(weights=me) if rank in (0, 2) else None, STEPS, shard=True)
    finally:
        _sharding.os = os


def upload_from_nowhere():
    return checkpoint.upload(SCRATCH / "nowhere" if rank == 2 else own(**{me: "x"}), STEPS, shard=True)


def upload_nothing():
    return checkpoint.upload(None, STEPS, shard=True)


def storage_fails():
    broken = {"bucket": "missing"} if BUCKET else {"container_path": str(SCRATCH / "file" / "below")}
    kept_storage = checkpoint.swap_storage(from_config(CONFIG | broken, {}))
    try:
        if rank == 0:
            (SCRATCH / "file").write_text("")
        return write(a="1")
    finally:
        checkpoint.swap_storage(kept_storage)


def report_fails():
    checkpoint.failure = ConnectionError("the master said no")
    try:
        return write(**{me: "1"})
    finally:
        checkpoint.failure = None


def downloads():
    uuid = write(**{f"{me}.bin": me})
    target = SCRATCH / f"machine-{peers.cross_rank}"
    checkpoint.download(uuid, target, selector=lambda name: name == f"{me}.bin")
    alone = SCRATCH / f"alone-{rank}"
    checkpoint.download(uuid, alone, core.DownloadMode.NoSharedDownload, selector=lambda name: name == f"{me}.bin")
    return [sorted(os.listdir(target)), sorted(os.listdir(alone))]


def restores():
    uuid = write(**{f"{me}.bin": me})
    results = []
    with checkpoint.restore_path(uuid) as path:
        results.append([path == STORE / uuid, (path / f"{me}.bin").read_text()])
    with checkpoint.restore_path(uuid, selector=lambda name: name == f"{me}.bin") as path:
        results.append(sorted(os.listdir(path)))
        shared = str(path)
    peers.allgather(None)  # the worker that created the folder removes it
    results.append(os.path.exists(shared))
    mode = core.DownloadMode.NoSharedDownload
    if rank == 1:  # the other workers need not call it
        with checkpoint.restore_path(uuid, mode, selector=lambda name: name == f"{me}.bin") as path:
            results.append([sorted(os.listdir(path)), (path / f"{me}.bin").read_text()])
    return [shared, results]


def restore_of_nothing():
    with checkpoint.restore_path("00000000-0000-4000-8000-000000000000"):
        pass


def a_selector_fails():
    uuid = write(a="1")
    checkpoint.download(
        uuid, SCRATCH / f"failed-{peers.cross_rank}", selector=lambda name: {"": 1}[name] if rank == 3 else True
    )


def folders_differ():
    uuid = write(a="1")
    checkpoint.download(uuid, SCRATCH / f"own-{rank}")


def chief_looks_when_all_are_done():
    """Returns the folders of workers that remain when the chief checks their files."""
    looked, leftovers = SCRATCH / "looked", []
    wait_until_visible, rmtree = _sharding.wait_until_visible, _sharding.shutil.rmtree

    def look(target, expected):
        leftovers.extend(name for name in os.listdir(target) if name.startswith(".rank-"))
        looked.touch()
        wait_until_visible(target, expected)

    def remove(folder, **options):
        deadline = time.monotonic() + 0.5
        while rank == 2 and not looked.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        rmtree(folder, **options)

    _sharding.wait_until_visible, _sharding.shutil = look, SimpleNamespace(rmtree=remove)
    try:
        write(a="1")
    finally:
        _sharding.wait_until_visible, _sharding.shutil = wait_until_visible, shutil
    return leftovers


def listed():
    """Returns the names of all checkpoints in the storage, unfinished ones included."""
    if BUCKET:
        return {key.partition("/")[0] for key in in_bucket()}
    return set(os.listdir(STORE)) if STORE.exists() else set()


def main():
    names = [
        a_file_each, different_content, different_size, file_and_folder, one_fails, metadata_conflict,
        metadata_not_json, no_steps, uploaded, uploaded_from_one_folder,
        same_numbers_on_two_machines, upload_from_nowhere, upload_nothing,
        storage_fails, report_fails, downloads, restores, restore_of_nothing, a_selector_fails, folders_differ,
        chief_looks_when_all_are_done,
    ]  # fmt: skip
    out = {}
    for scenario in names:
        before = listed()
        peers.allgather(None)
        try:
            out[scenario.__name__] = {"result": scenario()}
        except Exception as error:
            out[scenario.__name__] = {"error": f"{type(error).__name__}: {error}"}
        peers.allgather(None)
        out[scenario.__name__]["left"] = len(listed() - before)
        peers.allgather(None)
    print("OUT" + json.dumps(out), flush=True)


main()
