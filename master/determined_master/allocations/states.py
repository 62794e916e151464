"""States of allocations and containers: the allowed transitions (docs/architecture/states.md), which lead forward."""

from determined.states import AllocationState as S
from determined.states import ContainerState as C
from determined_master.states.transitions import Table

ALLOWED: Table[S] = {
    S.PENDING: frozenset({S.ASSIGNED, S.TERMINATED}),
    S.ASSIGNED: frozenset({S.PULLING, S.STARTING, S.RUNNING, S.TERMINATING, S.TERMINATED}),
    S.PULLING: frozenset({S.STARTING, S.RUNNING, S.TERMINATING, S.TERMINATED}),
    S.STARTING: frozenset({S.RUNNING, S.TERMINATING, S.TERMINATED}),
    S.RUNNING: frozenset({S.TERMINATING, S.TERMINATED}),
    S.TERMINATING: frozenset({S.TERMINATED}),
    S.TERMINATED: frozenset(),
}

FIRST = S.PENDING

CONTAINER_ALLOWED: Table[C] = {
    C.ASSIGNED: frozenset({C.PULLING, C.STARTING, C.RUNNING, C.TERMINATED}),
    C.PULLING: frozenset({C.STARTING, C.RUNNING, C.TERMINATED}),
    C.STARTING: frozenset({C.RUNNING, C.TERMINATED}),
    C.RUNNING: frozenset({C.TERMINATED}),
    C.TERMINATED: frozenset(),
}
CONTAINER_FIRST = C.ASSIGNED
