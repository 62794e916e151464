"""States of an experiment: which transitions are allowed (docs/architecture/states.md), and how an experiment ends."""

from determined.states import ExperimentState as S
from determined_master.states.transitions import Table

_STOPPING = frozenset({S.STOPPING_COMPLETED, S.STOPPING_CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR})

ALLOWED: Table[S] = {
    S.PAUSED: frozenset({S.ACTIVE, S.ERROR}) | _STOPPING,
    S.ACTIVE: frozenset({S.PAUSED, S.ERROR}) | _STOPPING,
    S.STOPPING_COMPLETED: frozenset({S.COMPLETED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_CANCELED: frozenset({S.CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_KILLED: frozenset({S.CANCELED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_ERROR: frozenset({S.ERROR}),
    S.COMPLETED: frozenset({S.DELETING, S.PAUSED}),
    S.CANCELED: frozenset({S.DELETING, S.PAUSED}),
    S.ERROR: frozenset({S.DELETING, S.PAUSED}),
    S.DELETING: frozenset({S.DELETED, S.DELETE_FAILED}),
    S.DELETE_FAILED: frozenset({S.DELETING}),
    S.DELETED: frozenset(),
}

FIRST = S.PAUSED

TERMINAL = {
    S.STOPPING_COMPLETED: S.COMPLETED,
    S.STOPPING_CANCELED: S.CANCELED,
    S.STOPPING_KILLED: S.CANCELED,
    S.STOPPING_ERROR: S.ERROR,
}
"""Stopping state → the terminal state that follows once no trial is live."""
