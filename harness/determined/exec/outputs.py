"""Keeps the ``outputs`` of a trial from one attempt to the next: puts them back before the entrypoint, and stores them
when it has ended.

For a bucket it runs under the task's own Python, as ``python -m determined.exec.outputs restore|keep``, because that
has the libraries. A failure to keep outputs is logged as an error; it never changes how the attempt has ended.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid as uuids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from determined.client import checkpoints
from determined.client.session import Session
from determined.errors import ApiError, DeterminedError, StorageError
from determined.storage import Storage, from_config
from determined.storage.bucket_access import bucket_of
from determined.storage.output_files import MAX_FILES, OutputFiles, find, restore, store
from determined_launch import environment
from determined_launch.environment import TaskFacts

RESTORE, KEEP = "restore", "keep"
ROLE = "outputs"
CLEANUP_SECONDS = 4.0


@dataclass(frozen=True)
class Outputs:
    """The outputs of one attempt.

    ``python`` is the task's own Python, and ``root`` the work folder.
    """

    folders: Sequence[str]
    environ: Mapping[str, str]
    facts: TaskFacts
    storage: Mapping[str, Any]
    python: str
    root: Path
    most: int = MAX_FILES

    @classmethod
    def of(
        cls, config: Mapping[str, Any], environ: Mapping[str, str], facts: TaskFacts | None, python: str, *, rank: int
    ) -> "Outputs | None":
        """Returns None if there are none to keep here; of several containers only the first one keeps its own."""
        folders, storage = config.get("outputs"), config.get("checkpoint_storage")
        if not folders or not storage or facts is None or rank or not environ.get(environment.TRIAL_ID):
            return None
        root = Path(environ.get(environment.WORKDIR) or os.getcwd())
        return cls([str(each) for each in folders], environ, facts, storage, python, root)

    def restore(self) -> OutputFiles | None:
        """Puts back what the attempt before kept. Returns what is there then; None if it cannot be compared later.

        Raises DeterminedError if there is something that cannot be read: without it the next outputs would replace it.
        """
        if self.environ.get(environment.LATEST_OUTPUTS):
            if not self._is_bucket:
                restore_here(self)
            elif self._run(RESTORE):
                raise StorageError("the outputs of the attempt before cannot be put back")
        with contextlib.suppress(StorageError):
            return find(self.root, self.folders, self.most)
        return None

    def keep(self, before: OutputFiles | None) -> None:
        """Stores the outputs unless nothing differs from ``before``. Logs what cannot be kept; raises nothing."""
        try:
            found = find(self.root, self.folders, self.most)
            for sentence in found.described_left_out():
                _log("WARNING", f"not kept: {sentence}")
            if not _is_same(found, before):
                if not self._is_bucket:
                    keep_here(self, found)
                elif self._run(KEEP):
                    _log("ERROR", "the outputs of this attempt are not kept")
                    return
            self._note()
        except (DeterminedError, OSError) as error:
            _log("ERROR", f"the outputs of this attempt are not kept: {error}")

    def _note(self) -> None:
        """Lets the agent know which folders are not lost with the working folder."""
        folder = Path(self.environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR))
        with contextlib.suppress(OSError):
            (folder / environment.KEPT_OUTPUTS).write_text(json.dumps(list(self.folders)), encoding="utf-8")

    @property
    def _is_bucket(self) -> bool:
        return bucket_of(self.storage) is not None

    def _run(self, verb: str) -> int:
        argv = [self.python, "-m", "determined.exec.outputs", verb]
        child = subprocess.Popen(argv, env=dict(self.environ), stdin=subprocess.DEVNULL)
        try:
            return child.wait()
        except BaseException:
            child.terminate()  # it removes what it has uploaded
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(CLEANUP_SECONDS)
            raise


def restore_here(outputs: Outputs) -> None:
    """Puts back the outputs that the environment names. Raises StorageError."""
    uuid = outputs.environ[environment.LATEST_OUTPUTS]
    restore(from_config(outputs.storage, outputs.environ), uuid, outputs.root)
    _log("INFO", f"{', '.join(outputs.folders)} put back as the attempt before left it")


def keep_here(outputs: Outputs, found: OutputFiles) -> None:
    """Stores outputs and reports them; then the master removes those before. Raises DeterminedError."""
    storage = from_config(outputs.storage, outputs.environ)
    uuid = str(uuids.uuid4())
    metadata = {"steps_completed": 0, "outputs": list(outputs.folders)}
    store(storage, outputs.root, found, uuid, metadata)
    try:
        _report(outputs.facts, storage, uuid, metadata)
    except ApiError as error:
        storage.delete(uuid)  # the master does not know it, so nobody else would remove it
        raise StorageError(f"the master does not take them: {error}") from error
    number = len(found.files)
    _log("INFO", f"{', '.join(outputs.folders)} kept: {number:,} file{'s' * (number != 1)}, {found.size:,} bytes")


def _report(facts: TaskFacts, storage: Storage, uuid: str, metadata: Mapping[str, Any]) -> None:
    body = {
        "uuid": uuid,
        "role": ROLE,
        "allocationId": facts.allocation_id,
        "reportTime": datetime.now(timezone.utc).isoformat(),
        "resources": {name: str(size) for name, size in storage.resources(uuid).items()},
        "metadata": dict(metadata),
        "state": "STATE_COMPLETED",
        "training": {},
    }
    with Session(facts.master, allocation_token=facts.session_token) as session:
        checkpoints.report(session, body)


def _is_same(found: OutputFiles, before: OutputFiles | None) -> bool:
    return before is not None and (found.files, found.folders, found.links) == (
        before.files,
        before.folders,
        before.links,
    )


def _log(level: str, text: str) -> None:
    """Prints a line whose level the agent reads."""
    print(f"{level}: determined: outputs: {text}", flush=True)


def main(argv: Sequence[str]) -> int:
    """Restores or keeps outputs under this Python. Returns the exit code; an error is logged."""
    environ = environment.current()
    config = json.loads(environment.value_of(environ, environment.EXPERIMENT_CONFIG) or "{}")
    outputs = Outputs.of(config, environ, TaskFacts.from_environment(environ), sys.executable, rank=0)
    if outputs is None or argv not in ([RESTORE], [KEEP]):
        print("determined: only a trial with outputs starts this", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if argv == [RESTORE]:
            restore_here(outputs)
        else:
            keep_here(outputs, find(outputs.root, outputs.folders))
    except (DeterminedError, OSError) as error:
        _log("ERROR", str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
