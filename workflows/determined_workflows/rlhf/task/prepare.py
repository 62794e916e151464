"""Builds a registered experiment and checks all of it before anything runs."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from determined_workflows.rlhf.task import experiment_check
from determined_workflows.rlhf.task.config import ExperimentConfig, make_experiment
from determined_workflows.rlhf.task.experiment_error import ExperimentError
from determined_workflows.rlhf.task.worker_config import ExperimentScheduling


@dataclasses.dataclass(frozen=True)
class PreparedExperiment:
    """An experiment that passed every check."""

    scheduling: ExperimentScheduling
    config: ExperimentConfig

    def notes(self, *, is_job: bool = False) -> list[str]:
        """Returns sentences about what has no effect. ``is_job``: cores and memory have one, in a job of Slurm."""
        return experiment_check.notes(self.scheduling, self.config, with_effect=("cpu", "mem") if is_job else ())


def prepare(experiment_name: str, trial_name: str, arguments: Mapping[str, Any] | None = None) -> PreparedExperiment:
    """Returns the experiment registered under this name, checked, with its workers' information set.

    To be called after the project's modules were imported.

    Args:
        experiment_name: the name that the experiment is registered under.
        trial_name: name of the trial.
        arguments: keyword arguments of the registered class: the hyperparameters of a trial on a cluster.

    Raises:
        UnknownName: no such experiment; the text has the nearest.
        ExperimentError: names, counts, registered names or handles do not fit; it lists every fault.
        DataflowError: the functions of a step do not fit together.
    """
    experiment_check.check_names(experiment_name, trial_name)
    experiment = make_experiment(experiment_name, **(arguments or {}))
    scheduling, config = experiment.scheduling_setup(), experiment.initial_setup()
    for made, kind, method in (
        (scheduling, ExperimentScheduling, "scheduling_setup"),
        (config, ExperimentConfig, "initial_setup"),
    ):
        if not isinstance(made, kind):
            raise ExperimentError(
                [f"{method} of the experiment {experiment_name!r} returns no {kind.__name__}: {made!r}"]
            )
    experiment_check.check_scheduling(scheduling, config)
    experiment_check.check_registered(config, config.master_worker[0].leveled_exec_funcs)
    config.set_worker_information(experiment_name, trial_name)
    return PreparedExperiment(scheduling, config)
