"""Submits a plan as one experiment."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from determined.client.session import Session
from determined.context import pack
from determined_workflows.composed_experiment import create
from determined_workflows.runner.cluster.plan import CONFIG_NAME, TASK_FOLDER, GridPlan
from determined_workflows.runner.task import run_task


def submit(session: Session, plan: GridPlan, folder: Path, output: Path) -> tuple[int, list[str]]:
    """Creates the experiment and returns its id with notes about links and files that were left out of the context.

    The context is ``folder`` without the output and what ``.detignore`` names. Raises ConfigError with what the master
    finds wrong, and ContextError if the folder cannot be packed.
    """
    excluded = [f"/{TASK_FOLDER}/"]
    with_output = Path(folder.resolve())
    if output.resolve().is_relative_to(with_output):
        excluded.append(f"/{output.resolve().relative_to(with_output).as_posix()}/")
    with _task_folder(plan) as program:
        packed = pack(folder, [program], exclude=excluded)
    return create(session, plan.config, packed, name=CONFIG_NAME), packed.notes


@contextmanager
def _task_folder(plan: GridPlan) -> Iterator[Path]:
    with TemporaryDirectory() as above:
        folder = Path(above, TASK_FOLDER)
        folder.mkdir()
        shutil.copy(run_task.__file__, folder)
        (folder / run_task.PLAN).write_text(plan.trials_file(), encoding="utf-8")
        yield folder
