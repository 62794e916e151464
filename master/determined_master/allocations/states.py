"""States of an allocation: which transitions are allowed (docs/states.md). They only move forward."""

from determined.states import AllocationState as S
from determined_master.transitions import Table, reverse

ALLOWED: Table[S] = {
    S.PENDING: frozenset({S.ASSIGNED, S.TERMINATED}),
    S.ASSIGNED: frozenset({S.PULLING, S.STARTING, S.RUNNING, S.TERMINATING, S.TERMINATED}),
    S.PULLING: frozenset({S.STARTING, S.RUNNING, S.TERMINATING, S.TERMINATED}),
    S.STARTING: frozenset({S.RUNNING, S.TERMINATING, S.TERMINATED}),
    S.RUNNING: frozenset({S.TERMINATING, S.TERMINATED}),
    S.TERMINATING: frozenset({S.TERMINATED}),
    S.TERMINATED: frozenset(),
}

FROM = reverse(ALLOWED)
FIRST = S.PENDING
