"""What `det hydra` keeps in the folder of a run: where its jobs run, and the lock, output and state of a local run.

The folder `.det_hydra` of a run has `record.json`, and what :mod:`determined_workflows.runner.output_folder` keeps for
a run on this machine. A job that ran by itself has the file `state` there.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from determined.errors import ConfigError
from determined_launch.atomic_file import write_atomic
from determined_workflows.hydra.composition import Composition

FOLDER, FILE = ".det_hydra", "record.json"


@dataclass(frozen=True)
class Record:
    """Where the jobs of a run folder run.

    ``slurm_folder`` holds the scripts of its jobs of Slurm. ``first_job`` is the number of the experiment's first job:
    a sweeper may launch several experiments, of which this is the newest.
    """

    target: str
    jobs: int
    master: str | None = None
    experiment: int | None = None
    slurm_folder: str | None = None
    first_job: int = 0

    @property
    def numbers(self) -> range:
        """Returns the numbers of the jobs."""
        return range(self.first_job, self.first_job + self.jobs)

    def write(self, run: Path) -> None:
        """Stores the record in the folder of a run. Raises OSError."""
        kept_in(run).mkdir(parents=True, exist_ok=True)
        write_atomic(kept_in(run) / FILE, json.dumps(asdict(self), indent=1), mode=0o644)


def kept_in(run: Path) -> Path:
    """Returns the folder in a run folder that belongs to `det hydra`."""
    return run / FOLDER


def read(run: Path) -> Record | None:
    """Returns the record of a run folder; None if `det hydra` did not start the run. Raises ConfigError if it is
    damaged."""
    path = kept_in(run) / FILE
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}); remove it, and the files of Hydra are read alone"
        ) from None


def folder_of(composition: Composition) -> Path | None:
    """Returns the folder of the results of a composition, or None if it has none."""
    folder = composition.sweep_dir if composition.is_sweep else composition.run_dir
    return None if folder is None else composition.working_folder / folder
