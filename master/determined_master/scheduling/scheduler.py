"""Plans a pool. Pure: a frozen view in, a plan out."""

from determined_master.scheduling.plan import Plan
from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.view import PoolView


def plan(pool: PoolView) -> Plan:
    """Returns placements, releases and refusals by the rules of the pool's scheduler, and why each of the others waits.
    Every slot is assigned at most once; running allocations keep their slots unless they are released."""
    return PoolState.of(pool).plan()
