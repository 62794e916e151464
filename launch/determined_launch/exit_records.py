"""Exit records: how each worker of this container ended, one atomically written file per rank."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from determined_launch import environment
from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular

MAX_BYTES = 1 << 20
OUT_OF_MEMORY = "out_of_memory"
HANG = "hang"


@dataclass(frozen=True)
class ExitRecord:
    """How a worker ended.

    ``code`` is a shell's exit code, ``signal`` a number, ``time`` in seconds since the epoch.
    """

    rank: int
    code: int
    signal: int | None
    host: str
    last_lines: list[str] = field(default_factory=list)
    time: float = 0.0
    cause: str = ""
    launch: str = ""
    """Identifies the start of a layer, so that records of an earlier start are ignored."""
    last_stderr: str = ""
    """The last line on standard error that is not blank: the text of ``sys.exit("text")``."""
    error: str = ""
    """The error of the last traceback on standard error."""
    place: str = ""
    """The last place of the user's code in that traceback: ``train.py:41``."""

    @property
    def has_failed(self) -> bool:
        return self.code != 0 or self.signal is not None


def folder(environ: Mapping[str, str]) -> Path:
    """Returns the folder of this container's records.

    A nested layer has one of its own, which the agent does not read.
    """
    return place(environ, "exits")


def place(environ: Mapping[str, str], name: str) -> Path:
    """Returns the folder ``name`` of this run, one for each level of nesting."""
    run = Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), name)
    return run / environ.get(environment.WORKER_OF, "")


def write(target: Path, record: ExitRecord) -> None:
    """Writes a record if possible: a full disk must not change how a worker's end is reported."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        path, text = target / f"rank-{record.rank}.json", json.dumps(asdict(record))
        # the agent sorts records by the time of their file where one has no usable time of its own
        write_atomic(path, text, modified=record.time, is_durable=False)
    except OSError:
        pass


def remove(target: Path, rank: int) -> None:
    """Removes the record of an earlier attempt of this rank."""
    try:
        (target / f"rank-{rank}.json").unlink()
    except OSError:
        pass


def can_write(target: Path) -> bool:
    """Returns True if a record can be written to the disk."""
    probe = target / ".probe"
    try:
        target.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"0")
        probe.unlink()
    except OSError:
        return False
    return True


def of_launch(target: Path, launch: str) -> list[ExitRecord]:
    """Returns the records of the workers of this launch, in the order in which they ended."""
    found = [record for path in target.glob("rank-*.json") if (record := _read(path)) is not None]
    return sorted((record for record in found if record.launch == launch), key=lambda record: record.time)


def _read(path: Path) -> ExitRecord | None:
    try:
        value = json.loads(read_regular(path, MAX_BYTES))
        return ExitRecord(**{name: value[name] for name in ExitRecord.__dataclass_fields__ if name in value})
    except (OSError, ValueError, TypeError, RecursionError):
        return None
