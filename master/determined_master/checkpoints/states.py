"""States of a checkpoint: the allowed transitions (docs/architecture/states.md). Every feature has such a module."""

from determined.states import CheckpointState as S
from determined_master.transitions import Table

ALLOWED: Table[S] = {
    S.ACTIVE: frozenset({S.COMPLETED, S.ERROR, S.DELETED}),
    S.COMPLETED: frozenset({S.PARTIALLY_DELETED, S.DELETED}),
    S.ERROR: frozenset({S.DELETED}),
    S.PARTIALLY_DELETED: frozenset({S.DELETED}),
    S.DELETED: frozenset(),
}
FIRST = S.ACTIVE
