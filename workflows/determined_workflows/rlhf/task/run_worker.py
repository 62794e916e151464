"""The program of every worker: ``python3 -m determined_workflows.rlhf.task.run_worker EXPERIMENT TRIAL``.

``determined.launch.roles`` starts one process for each worker; the variables of the layer say which one this is. The
working folder is the project, from which ``experiments`` is imported, then ``impl.data`` and ``impl.model`` if they
exist.
"""

import importlib.util
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from determined import core
from determined_launch import environment
from determined_workflows.rlhf.task import process_setup, project_modules, user_traceback
from determined_workflows.rlhf.task.config import ExperimentConfig
from determined_workflows.rlhf.task.prepare import prepare
from determined_workflows.rlhf.task.role_place import DATA_WORKER, MASTER_WORKER, RolePlace
from determined_workflows.rlhf.task.set_checkpoint import SetCheckpoint


def load(experiment: str, trial: str, hyperparameters: Mapping[str, Any]) -> ExperimentConfig:
    """Imports the project in the working folder and returns the configuration of one of its experiments.

    Args:
        experiment: the name that the experiment is registered by.
        trial: name of the trial.
        hyperparameters: those of the trial on a cluster; they are passed to the registered class by name.

    Raises:
        RuntimeError: the working folder is no project.
        UnknownName: no experiment has this name.
        ExperimentError: the names or the configuration cannot be used.
    """
    if importlib.util.find_spec(project_modules.EXPERIMENTS) is None:
        raise RuntimeError(f"{os.getcwd()} has no package experiments: det rlhf init writes a project")
    for _ in project_modules.import_project(Path.cwd()):
        pass
    return prepare(experiment, trial, hyperparameters).config


def run(config: ExperimentConfig, place: RolePlace, environ: Mapping[str, str]) -> None:
    """Runs the worker of this process until the end of the training, or until the set was stored for a pause."""
    process_setup.use_deterministic_algorithms(environ)
    with core.init(
        distributed=core.DistributedContext.from_roles(),
        preempt_mode=core.PreemptMode.ChiefOnly,
        checkpoint_storage=process_setup.checkpoint_storage(environ),
    ) as context:
        checkpoint = SetCheckpoint(context, f"{place.role}-{place.index}", environ)
        if place.role == MASTER_WORKER:
            from determined_workflows.rlhf.task.master_worker import MasterWorkerProcess

            MasterWorkerProcess(config, place, context, checkpoint).run()
            return
        if context.info is None:
            process_setup.leave_signals_to_the_master_worker()
        if place.role == DATA_WORKER:
            from determined_workflows.rlhf.task.data_worker import DataWorkerProcess

            DataWorkerProcess(config, place, checkpoint).run()
            return
        from determined_workflows.rlhf.task.model_worker import ModelWorkerProcess

        used = process_setup.device()
        with process_setup.process_group(used, environ) as (rank, _):
            ModelWorkerProcess(config, place, checkpoint, used, rank).run()


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 after a clean end, 1 after an error, which is shown with the user's file and line."""
    words = list(sys.argv[1:] if argv is None else argv)
    if len(words) != 2:
        print("usage: run_worker EXPERIMENT TRIAL", file=sys.stderr)
        return 2
    environ = dict(os.environ)
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    level = environ.get("LOGLEVEL") or "INFO"
    logging.getLogger("determined").setLevel(level)
    if level == "INFO" and environment.TaskFacts.from_environment(environ) is None:
        logging.getLogger("determined.core").setLevel(logging.WARNING)  # the master worker prints each step itself
    name = "worker"
    try:
        place = RolePlace.from_environment(environ)
        name = place.name
        hyperparameters = json.loads(environment.value_of(environ, environment.HPARAMS) or "{}")
        run(load(words[0], words[1], hyperparameters), place, environ)
    except Exception as error:
        user_traceback.show(error, name)
        sys.stdout.flush()
        # not sys.exit: threads of libraries and of functions that wait for a worker must not keep the process
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
