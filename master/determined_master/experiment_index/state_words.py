"""Parses the states of a filter: as stored, with or without the wire's prefix, or as displayed. Pure."""

from collections.abc import Mapping

from determined.config.findings import nearest
from determined.errors import BadRequest
from determined.states import ExperimentState
from determined_master.experiment_index.filter_values import word_of
from determined_master.experiment_index.filters import Field
from determined_master.states.display_state import PAUSING, PROGRESS

_STOPPING = frozenset(state.value for state in ExperimentState if state.is_stopping)
_NAMES = frozenset({*(state.value for state in ExperimentState), *PROGRESS, PAUSING})
_DISPLAYED: dict[str, frozenset[str]] = {
    "failed": frozenset({"ERROR"}),
    "stopping": _STOPPING,
    "completing": frozenset({"STOPPING_COMPLETED"}),
    "canceling": frozenset({"STOPPING_CANCELED"}),
    "killing": frozenset({"STOPPING_KILLED"}),
    "failing": frozenset({"STOPPING_ERROR"}),
    "cancelled": frozenset({"CANCELED"}),
}
"""Displayed words that differ from the state's name in lower case."""
WORDS: Mapping[str, frozenset[str]] = {
    name.lower().replace("_", " "): frozenset({name}) for name in _NAMES
} | _DISPLAYED


def states_of(field: Field) -> frozenset[str]:
    """Returns the states that ``field`` names; with ``contains`` those whose name or displayed word contains it.

    Raises:
        BadRequest: No state has this name. The message suggests the nearest.

    >>> sorted(states_of(Field("state", "=", "failed")))
    ['ERROR']
    """
    word = word_of(field).strip().lower().removeprefix("state_").replace("_", " ")
    if field.operator in ("contains", "notContains"):
        return frozenset[str]().union(*(states for known, states in WORDS.items() if word in known))
    if word in WORDS:
        return WORDS[word]
    near = nearest(word, WORDS)
    hint = f'; did you mean "{near}"?' if near else f"; valid states: {', '.join(sorted(WORDS))}"
    raise BadRequest(f"there is no state {word[:60]!r}{hint}")
