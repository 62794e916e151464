"""Builds a registered experiment and checks all of it before anything runs."""

import dataclasses

from determined_workflows.rlhf.task import experiment_check
from determined_workflows.rlhf.task.config import ExperimentConfig, ExperimentScheduling, make_experiment
from determined_workflows.rlhf.task.experiment_check import ExperimentError


@dataclasses.dataclass(frozen=True)
class PreparedExperiment:
    """An experiment that passed every check, and what to say about it."""

    scheduling: ExperimentScheduling
    config: ExperimentConfig
    notes: list[str]


def prepare(experiment_name: str, trial_name: str) -> PreparedExperiment:
    """Returns the experiment registered under this name, checked, with its workers' information set.

    To be called after the project's ``experiments``, ``impl.data`` and ``impl.model`` were imported.

    Raises:
        UnknownName: no such experiment; the text has the nearest.
        ExperimentError: names, counts, registered names or handles do not fit; it lists every fault.
        DataflowError: the functions of a step do not fit together.
    """
    experiment_check.check_names(experiment_name, trial_name)
    experiment = make_experiment(experiment_name)
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
    return PreparedExperiment(scheduling, config, experiment_check.notes(scheduling, config))
