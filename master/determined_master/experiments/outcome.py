"""How an experiment ends, from how its search ended."""

from determined.states import ExperimentState
from determined_master.searcher.actions import Shutdown


def stopping_state(shutdown: Shutdown) -> ExperimentState:
    if shutdown.failed:
        return ExperimentState.STOPPING_ERROR
    if shutdown.canceled:
        return ExperimentState.STOPPING_CANCELED
    return ExperimentState.STOPPING_COMPLETED


TERMINAL = {
    ExperimentState.STOPPING_COMPLETED: ExperimentState.COMPLETED,
    ExperimentState.STOPPING_CANCELED: ExperimentState.CANCELED,
    ExperimentState.STOPPING_KILLED: ExperimentState.CANCELED,
    ExperimentState.STOPPING_ERROR: ExperimentState.ERROR,
}
"""What a stopping experiment becomes once it has no live trial."""
