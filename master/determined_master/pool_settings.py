"""Settings of resource pools and their schedulers, with the names of Determined's master.yaml."""

from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from determined.config.findings import nearest

DEFAULT_PRIORITY = 42


class SchedulerSettings(BaseModel):
    """How a pool shares its slots between jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["priority", "fair_share"] = "priority"
    """``priority``: by priority, then by place in the queue. ``fair_share``: slots in proportion to the weights of
    jobs; running trials are always preempted for it."""
    preemption: bool | None = None
    """Running trials leave, with a checkpoint, for jobs of better priority. Default: the master's ``preemption``.
    Always on with ``fair_share``."""
    default_priority: int | None = Field(default=None, ge=1, le=99)
    """Priority of jobs that name none; smaller is more urgent. Default: the master's ``default_priority``."""
    fitting_policy: Literal["best", "worst"] = "best"
    """``best``: the agent with the fewest free slots that suffice; ``worst``: the one with the most."""


class PoolSettings(BaseModel):
    """One resource pool."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool_name: str = Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name by which experiments, commands and agents name the pool."""
    description: str = ""
    """Description, which clients display."""
    scheduler: SchedulerSettings | None = None
    """Default: the master's ``scheduler``."""
    max_aux_containers_per_agent: int | None = Field(default=None, ge=0)
    """Maximum number of containers without slots on an agent. Default: the master's ``max_zero_slot_containers``."""
    max_slots_per_user: int | None = Field(default=None, ge=1)
    """Maximum number of slots that one user's jobs hold at once; further ones wait. Default: no maximum."""


def unknown(name: str, pools: Collection[str]) -> tuple[str, str]:
    """Returns what is wrong with the name of a pool that does not exist, and a hint with those that do."""
    near = nearest(name, pools)
    hint = f'did you mean "{near}"?' if near else "this cluster has " + ", ".join(f'"{each}"' for each in pools)
    return f'unknown resource pool "{name}"', hint


def repeated(pools: Sequence[PoolSettings]) -> str | None:
    """Returns a name that two of the pools share, or None."""
    names = [pool.pool_name for pool in pools]
    return next((name for name in names if names.count(name) > 1), None)
