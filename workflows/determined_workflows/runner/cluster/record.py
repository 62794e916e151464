"""The file in an output that says which experiment runs its grid."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from determined_workflows.runner.errors import ConflictError, RunnerError
from determined_workflows.runner.supervisor import store

FILE_NAME = ".runner.cluster"


@dataclass(frozen=True)
class FetchedTask:
    """What was fetched of a task: the checkpoint and the states of its commands in it."""

    checkpoint: str
    states: Mapping[str, str]


@dataclass
class Record:
    """The grid of an output on a cluster. ``is_over``: all outputs were fetched, and nothing runs any more."""

    master: str
    experiment: int
    tasks: list[str]
    is_over: bool = False
    fetched: dict[str, FetchedTask] = field(default_factory=dict)

    def write(self, output: Path) -> None:
        """Stores the record. Raises OSError."""
        store(output / FILE_NAME, json.dumps(asdict(self), indent=1), is_durable=True)


def read(output: Path) -> Record | None:
    """Returns the record of an output; None if no cluster ever ran it. Raises RunnerError if it is damaged."""
    path = output / FILE_NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        fetched = {name: FetchedTask(**each) for name, each in found.pop("fetched").items()}
        return Record(**found, fetched=fetched)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunnerError(f"{path} cannot be read ({error}); remove it to run the grid anew") from None


def check_is_over(output: Path) -> None:
    """Raises ConflictError if an experiment still runs the grid of an output."""
    found = read(output)
    if found is not None and not found.is_over:
        raise ConflictError(
            f"experiment {found.experiment} of {found.master} runs the grid of {output}; `det runner logs -f` follows "
            "it and fetches its outputs"
        )
