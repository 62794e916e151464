"""States of instances: the allowed transitions (docs/architecture/states.md), which lead forward."""

from determined.states import InstanceState as S
from determined_master.states.transitions import Table

ALLOWED: Table[S] = {
    S.STARTING: frozenset({S.RUNNING, S.ENDING, S.ENDED}),
    S.RUNNING: frozenset({S.ENDING}),
    S.ENDING: frozenset({S.ENDED}),
    S.ENDED: frozenset(),
}

FIRST = S.STARTING
