"""Sends a trial to a cluster: the project with the code of the workers, and one experiment with one trial."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from determined.client.session import Session
from determined.context import pack
from determined.errors import ConfigError
from determined_workflows.composed_experiment import create
from determined_workflows.rlhf import project
from determined_workflows.rlhf.composition import NAME, ROLES_FILE, Composition

PACKAGE = "determined_workflows"
EXCLUDED = (f"/{project.RUNS_FOLDER}/", f"/{ROLES_FILE}", f"/{PACKAGE}/")


def submit(
    session: Session,
    composition: Composition,
    config: str,
    folder: Path,
    *,
    variables: Mapping[str, str],
    is_paused: bool,
) -> tuple[int, list[str]]:
    """Creates the experiment and returns its id, with notes about files that were left out of the context.

    Raises ConfigError with what the master finds wrong, and ContextError if the folder cannot be packed.
    """
    with _added(composition, variables) as includes:
        packed = pack(folder, includes, exclude=EXCLUDED)
    return create(session, config, packed, name=NAME, is_paused=is_paused), packed.notes


def slurm_pool(session: Session, partition: str | None) -> str | None:
    """Returns the pool of the cluster whose agents are jobs of Slurm; None if it has none.

    Raises ConfigError if ``partition`` names none of them, or there are several and none is named.
    """
    pools = session.get("/detent/cluster/overview")["pools"]
    names = [str(pool["name"]) for pool in pools if pool["provider"] == "slurm"]
    if not names:
        return None
    if partition in names:
        return partition
    if len(names) > 1:
        raise ConfigError(
            f"--partition {partition}: the pools of {session.master} on Slurm are {', '.join(names)}; name one of them"
        )
    return names[0]


@contextmanager
def _added(composition: Composition, variables: Mapping[str, str]) -> Iterator[list[Path]]:
    """Yields what travels beside the project: the roles, and the package that the project imports, as far as workers
    need it."""
    source = Path(__file__).resolve().parent
    with TemporaryDirectory() as above:
        roles = json.dumps(composition.roles_file(variables), indent=1)
        (Path(above) / ROLES_FILE).write_text(roles, encoding="utf-8")
        package = Path(above) / PACKAGE
        shutil.copytree(source / "task", package / "rlhf" / "task", ignore=shutil.ignore_patterns("__pycache__"))
        for part in (package, package / "rlhf"):
            (part / "__init__.py").write_text("", encoding="utf-8")
        yield [Path(above) / ROLES_FILE, package]
