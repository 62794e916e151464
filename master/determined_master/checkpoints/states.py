"""States of a checkpoint: the allowed transitions (docs/architecture/states.md). Every feature has such a module."""

from determined.states import CheckpointState as S
from determined_master.states.transitions import Table

ALLOWED: Table[S] = {
    S.ACTIVE: frozenset({S.COMPLETED, S.ERROR, S.DELETING}),
    S.COMPLETED: frozenset({S.PARTIALLY_DELETED, S.DELETING, S.DELETED}),
    S.ERROR: frozenset({S.DELETING}),
    S.PARTIALLY_DELETED: frozenset({S.DELETING, S.DELETED}),
    S.DELETING: frozenset({S.DELETED, S.DELETE_FAILED}),
    S.DELETE_FAILED: frozenset({S.DELETING}),
    S.DELETED: frozenset(),
}
FIRST = S.ACTIVE
