"""Exit records: how each worker of this container ended, one file a rank, written whole."""

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
    """``code`` as a shell shows it, ``signal`` a number, ``time`` in seconds since the epoch."""

    rank: int
    code: int
    signal: int | None
    host: str
    last_lines: list[str] = field(default_factory=list)
    time: float = 0.0
    cause: str = ""
    launch: str = ""
    """Which start of a layer it belongs to, so that an earlier one's records are not taken for its own."""

    @property
    def has_failed(self) -> bool:
        return self.code != 0 or self.signal is not None


def folder(environ: Mapping[str, str]) -> Path:
    """Of this container; inside a worker of its own, so that a nested layer tells the agent nothing."""
    return place(environ, "exits")


def place(environ: Mapping[str, str], name: str) -> Path:
    """The folder ``name`` of this run, one for each level of nesting."""
    run = Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR), name)
    return run / environ.get(environment.WORKER_OF, "")


def write(target: Path, record: ExitRecord) -> None:
    """Best effort: a full disk must not change how the worker's end is seen."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        path, text = target / f"rank-{record.rank}.json", json.dumps(asdict(record))
        # who looks at files alone sees the same order
        write_atomic(path, text, modified=record.time, is_durable=False)
    except OSError:
        pass


def remove(target: Path, rank: int) -> None:
    """Takes away what an earlier try of this rank left."""
    try:
        (target / f"rank-{rank}.json").unlink()
    except OSError:
        pass


def can_write(target: Path) -> bool:
    """Whether a record would have come to the disk."""
    probe = target / ".probe"
    try:
        target.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"0")
        probe.unlink()
    except OSError:
        return False
    return True


def of_launch(target: Path, launch: str) -> list[ExitRecord]:
    """The records that workers of this launch left, in the order in which they ended."""
    found = [record for path in target.glob("rank-*.json") if (record := _read(path)) is not None]
    return sorted((record for record in found if record.launch == launch), key=lambda record: record.time)


def _read(path: Path) -> ExitRecord | None:
    try:
        value = json.loads(read_regular(path, MAX_BYTES))
        return ExitRecord(**{name: value[name] for name in ExitRecord.__dataclass_fields__ if name in value})
    except (OSError, ValueError, TypeError, RecursionError):
        return None
