"""Removes the files of checkpoints where the master does not reach them: the entrypoint of a task without slots.

It runs as the owner of the experiment, with the environment, mounts and keys of its configuration.
"""

import json
import sys
from collections.abc import Mapping

from determined.client import checkpoints
from determined.client.session import Session
from determined.errors import StorageError
from determined.storage import Storage, from_config
from determined.storage.directory import DirectoryStorage
from determined_launch import environment
from determined_launch.environment import TaskFacts


def main() -> int:
    """Removes the checkpoints that the environment names, reports each, and returns the exit code."""
    environ = environment.current()
    facts = TaskFacts.from_environment(environ)
    order = json.loads(environ.get(environment.CHECKPOINTS_TO_REMOVE) or "null")
    if facts is None or order is None:
        print("determined: only the master starts this, to remove checkpoints", file=sys.stderr)
        return 2
    failed = remove(order["storage"], order["uuids"], environ)
    removed = [uuid for uuid in order["uuids"] if uuid not in failed]
    for uuid in removed:
        print(f"removed checkpoint {uuid}", flush=True)
    for uuid, why in failed.items():
        print(f"cannot remove checkpoint {uuid}: {why}", file=sys.stderr, flush=True)
    with Session(facts.master, allocation_token=facts.session_token) as session:
        checkpoints.report_removed(session, removed, failed)
    return 0


def remove(config: Mapping[str, object], uuids: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Removes the files of checkpoints. Files that are gone are no error.

    Parameters:
        config: the ``checkpoint_storage`` section in which they are.

    Returns:
        Why files are left, by checkpoint.
    """
    try:
        storage = from_config(config, environ)
        _check_is_here(storage)
    except StorageError as error:
        return dict.fromkeys(uuids, str(error))
    failed = {}
    for uuid in uuids:
        try:
            storage.delete(uuid)
        except StorageError as error:
            failed[uuid] = str(error)
    return failed


def _check_is_here(storage: Storage) -> None:
    """Raises StorageError if the folder of all checkpoints is missing, as on a machine that does not have it."""
    if isinstance(storage, DirectoryStorage) and not storage.root.is_dir():
        raise StorageError(f"{storage.root} is not on this machine, so its checkpoints cannot be removed here")


if __name__ == "__main__":
    sys.exit(main())
