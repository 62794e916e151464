"""The run of Weights & Biases that belongs to a trial: the same one after each pause and restart."""

from collections.abc import Mapping

from determined_launch import environment

RUN_ID, RESUME, RUN_GROUP = "WANDB_RUN_ID", "WANDB_RESUME", "WANDB_RUN_GROUP"
CLUSTER_CHARACTERS = 8
"""So many of the cluster's id tell the runs of two clusters in one project apart."""


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns what the chief of a trial gets beside what its user has set; nothing for other tasks.

    A user who names a run, or says how one is resumed, decides on both.

    >>> variables({"DET_CLUSTER_ID": "6f1d0c9e-22", "DET_TRIAL_ID": "7", "DET_EXPERIMENT_ID": "2"})["WANDB_RUN_ID"]
    'trial-7-6f1d0c9e'
    """
    trial, experiment = environ.get(environment.TRIAL_ID), environ.get(environment.EXPERIMENT_ID)
    if not trial or not experiment:
        return {}
    cluster = environ.get(environment.CLUSTER_ID, "")[:CLUSTER_CHARACTERS]
    run = {RUN_ID: f"trial-{trial}-{cluster}", RESUME: "allow"}
    group = {RUN_GROUP: f"experiment-{experiment}-{cluster}"}
    if RUN_ID in environ or RESUME in environ:
        run = {}
    return run | {name: value for name, value in group.items() if name not in environ}


def without(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a worker that is not the chief: several processes must not write to one run."""
    bare = {name: value for name, value in environ.items() if name not in (RUN_ID, RESUME, RUN_GROUP)}
    given = variables(bare)
    if environ.get(RUN_ID) != given.get(RUN_ID):
        given.pop(RESUME, None)  # it is the user's
    return {name: value for name, value in environ.items() if given.get(name) != value}
