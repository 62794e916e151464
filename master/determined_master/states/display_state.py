"""The displayed state of an experiment or a trial. The list of experiments computes the same in SQL."""

from collections.abc import Collection, Mapping, Sequence

from determined.states import AllocationState, ExperimentState, TrialState

QUEUED, PULLING, STARTING, RUNNING, PAUSING = "QUEUED", "PULLING", "STARTING", "RUNNING", "PAUSING"
BUILDING_ENVIRONMENT = "BUILDING_ENVIRONMENT"
BY_ALLOCATION: Mapping[AllocationState, str] = {
    AllocationState.PENDING: QUEUED,
    AllocationState.ASSIGNED: STARTING,
    AllocationState.PULLING: PULLING,
    AllocationState.STARTING: STARTING,
    AllocationState.RUNNING: RUNNING,
    AllocationState.TERMINATING: RUNNING,
}
_ACTIVE = (ExperimentState.ACTIVE, TrialState.ACTIVE)
_PAUSED = (ExperimentState.PAUSED, TrialState.PAUSED)
PROGRESS: Sequence[str] = (QUEUED, BUILDING_ENVIRONMENT, PULLING, STARTING, RUNNING)


def display_state(
    state: ExperimentState | TrialState, live: Collection[AllocationState], *, is_building: bool = False
) -> str:
    """Returns the word that people see. ``live`` holds the states of the live allocations; ``is_building`` says that a
    trial waits for its environment, without an allocation.

    An active experiment shows the most advanced of its allocations. A paused one that still holds slots is pausing.

    >>> display_state(ExperimentState.ACTIVE, [AllocationState.PULLING, AllocationState.RUNNING])
    'RUNNING'
    >>> display_state(TrialState.ACTIVE, [], is_building=True)
    'BUILDING_ENVIRONMENT'
    >>> display_state(TrialState.PAUSED, [AllocationState.RUNNING])
    'PAUSING'
    >>> display_state(TrialState.STOPPING_KILLED, [AllocationState.RUNNING])
    'STOPPING_KILLED'
    """
    words = [BY_ALLOCATION[each] for each in live if each in BY_ALLOCATION]
    if state in _ACTIVE:
        words += [BUILDING_ENVIRONMENT] if is_building else []
        return max(words, key=PROGRESS.index, default=QUEUED)
    if state in _PAUSED and words:
        return PAUSING
    return str(state.value)
