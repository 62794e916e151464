"""What a run of an RLHF trial keeps in its folder: where it runs, and how it continues."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from determined.errors import ConfigError, NotFound
from determined_launch.atomic_file import write_atomic

FILE = "record.json"


@dataclass(frozen=True)
class Record:
    """``target``: ``local``, ``det`` or ``slurm``. ``job``: folder of the submission's record of a job of Slurm."""

    target: str
    master: str | None = None
    experiment: int | None = None
    job: str | None = None

    def write(self, folder: Path) -> None:
        """Stores the record in the folder of a run. Raises ConfigError if it cannot be written."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / FILE, json.dumps(asdict(self), indent=1), mode=0o644)
        except OSError as error:
            raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None


def read(folder: Path) -> Record:
    """Returns the record of a run. Raises NotFound if nothing was started, ConfigError if it is damaged."""
    path = folder / FILE
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{folder.parent.name} {folder.name} was not started from here: there is no {path}") from None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
