"""What follows for a trial whose environment holds the official library, which then runs in place of the cluster's."""

import re
from collections.abc import Iterable, Mapping

OURS = "environment.harness: ours"
READS_ALL = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
"""Variable of torch with which ``torch.load`` reads any object, as it did by default before 2.6."""
_TRUE = ("1", "y", "yes", "true")
"""Its values with this effect."""
_FIRST_STRICT = (2, 6)
_VERSION = re.compile(r"(\d+)\.(\d+)")


def consequence(official: str) -> str:
    """Returns the line for the log of a trial that runs with the official library."""
    return (
        f"pause and resume are as in determined {official}; {OURS} chooses this cluster's library, with which a paused "
        "run goes on at the same record of the data"
    )


def unreadable_checkpoints(official: str, torch: str | None, environment: Mapping[str, str]) -> str:
    """Returns a warning if the official library cannot read its own checkpoints; empty if it can.

    Args:
        official: version of the official library.
        torch: version of torch beside it, or None.
        environment: variables of the task.
    """
    version = _VERSION.match(torch or "")
    if (
        version is None
        or (int(version[1]), int(version[2])) < _FIRST_STRICT
        or environment.get(READS_ALL, "").lower() in _TRUE
    ):
        return ""
    return (
        f"determined {official} cannot read the checkpoint of a PyTorchTrial with torch {torch}: a paused PyTorchTrial "
        f"fails when it is activated. {_remedy()}"
    )


def explain_failure(lines: Iterable[str]) -> str:
    """Returns why a trial with the official library failed if its last lines show a checkpoint that it cannot read."""
    text = "\n".join(lines)
    # The cluster's library is in no site-packages, and reads its checkpoints.
    if "Weights only load failed" not in text or "site-packages/determined/pytorch" not in text:
        return ""
    return (
        "the determined library of this environment cannot read its own checkpoint with torch 2.6 or newer. "
        f"{_remedy()}"
    )


def _remedy() -> str:
    return f"Choose this cluster's library ({OURS}), or write {READS_ALL}=1 into environment.environment_variables"
