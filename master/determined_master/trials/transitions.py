"""What may follow what for a trial (docs/states.md)."""

from determined.states import TrialState as S
from determined_master.transitions import Table, reverse

_STOPPING = frozenset({S.STOPPING_COMPLETED, S.STOPPING_CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR})
_TERMINAL = frozenset({S.COMPLETED, S.CANCELED, S.ERROR})

ALLOWED: Table[S] = {
    S.ACTIVE: frozenset({S.PAUSED}) | _STOPPING | _TERMINAL,
    S.PAUSED: frozenset({S.ACTIVE}) | _STOPPING | _TERMINAL,
    S.STOPPING_COMPLETED: frozenset({S.COMPLETED, S.STOPPING_CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_CANCELED: frozenset({S.CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_KILLED: frozenset({S.CANCELED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_ERROR: frozenset({S.ERROR}),
    S.COMPLETED: frozenset({S.ACTIVE}),
    S.CANCELED: frozenset({S.ACTIVE}),
    S.ERROR: frozenset({S.ACTIVE}),
}

FROM = reverse(ALLOWED)
FIRST = S.ACTIVE
