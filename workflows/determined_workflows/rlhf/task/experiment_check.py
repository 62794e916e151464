"""Checks of an experiment when it is built: names, counts, streams, models, batch sizes. Nothing runs before them."""

from typing import TYPE_CHECKING

from determined_workflows.rlhf.task.registry import unknown_name

if TYPE_CHECKING:
    from determined_workflows.rlhf.task.config import ExperimentConfig
    from determined_workflows.rlhf.task.dataflow import Dataflow

SAFE_METHODS = {
    "raw_bytes": "raw_bytes",
    "raw_compress": "raw_compress",
    "obs_compress": "obs_compress",
    "compress_except_policy_state": "compress_except_policy_state",
    "pickle_dict": "raw_bytes",
    "pickle": "raw_bytes",
    "compress_pickle": "raw_compress",
    "pickle_compress": "raw_compress",
}
"""What a stream uses for each serialization method: those that pickle are replaced."""


class ExperimentError(ValueError):
    """An experiment that cannot run. Its text has one sentence for each fault."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def check_names(experiment_name: str, trial_name: str) -> None:
    """Raises ExperimentError for names that cannot be used."""
    problems = [
        f"the {kind} name {name!r} has a '_': use '-' instead"
        for kind, name in (("experiment", experiment_name), ("trial", trial_name))
        if "_" in name
    ]
    if problems:
        raise ExperimentError(problems)


def check_stream(name: str, method: str) -> None:
    """Raises ExperimentError for a stream without a name or with an unknown serialization method."""
    if not isinstance(name, str) or not name:
        raise ExperimentError([f"a stream has a name, a text, not {name!r}"])
    if method not in SAFE_METHODS:
        raise ExperimentError([f"stream {name!r}: {unknown_name('serialization method', method, SAFE_METHODS)}"])


def check_config(config: "ExperimentConfig", dataflow: "Dataflow") -> None:
    """Raises ExperimentError with every fault of the workers' configurations."""
