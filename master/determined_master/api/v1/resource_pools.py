"""Resource pools: what each has, its scheduler, and what is used of it."""

from typing import Any

from fastapi import APIRouter

from determined_master.api.dependencies import Anyone, ManagersDep, Read, SettingsDep
from determined_master.api.pagination import page
from determined_master.api.schemas.base import BoundedInt, Pagination, Wire
from determined_master.resource_managers.manager import Capacity
from determined_master.settings.pool_settings import PoolSettings
from determined_master.settings.settings import Settings
from determined_master.users import pool_account

router = APIRouter(tags=["cluster"])
_EMPTY = (
    "agentDockerImage",
    "agentDockerNetwork",
    "agentDockerRuntime",
    "agentFluentImage",
    "containerStartupScript",
    "imageId",
    "instanceType",
    "masterCertName",
    "masterUrl",
    "startupScript",
    "accelerator",
    "clusterName",
)


class PoolsAnswer(Wire):
    resource_pools: list[dict[str, Any]]
    pagination: Pagination


@router.get("/api/v1/resource-pools")
async def get_pools(
    _principal: Anyone,
    settings: SettingsDep,
    managers: ManagersDep,
    session: Read,
    unbound: bool = False,
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> PoolsAnswer:
    """Lists resource pools. No pool is bound to a workspace, so ``unbound`` excludes none."""
    pools = [_pool(each, await managers.capacity(session, name), settings) for name, each in settings.pools.items()]
    shown, pagination = page(pools, offset, limit)
    return PoolsAnswer(resource_pools=shown, pagination=pagination)


def _pool(pool: PoolSettings, capacity: Capacity, settings: Settings) -> dict[str, Any]:
    scheduler = pool.scheduler
    kind = scheduler.type if scheduler else "priority"
    fitting = scheduler.fitting_policy if scheduler else "best"
    is_preemptive = kind == "fair_share" or bool(scheduler and scheduler.preemption)
    per_agent = pool.max_aux_containers_per_agent or 0
    provider = pool.provider
    details: dict[str, Any] = {"aws": None, "gcp": None, "priorityScheduler": None}
    if kind == "priority":
        default = settings.priority_in(pool.pool_name)
        details["priorityScheduler"] = {"preemption": is_preemptive, "defaultPriority": default, "k8Priorities": []}
    return dict.fromkeys(_EMPTY, "") | {
        "name": pool.pool_name,
        "description": pool.description,
        "type": "RESOURCE_POOL_TYPE_STATIC",
        "numAgents": capacity.agents,
        "slotsAvailable": capacity.slots,
        "slotsUsed": capacity.used,
        "slotType": f"TYPE_{capacity.slot_type.upper()}",
        "slotsPerAgent": capacity.slots_per_agent or (provider.slots_per_agent if provider else 0),
        "auxContainerCapacity": per_agent * capacity.agents,
        "auxContainerCapacityPerAgent": per_agent,
        "auxContainersRunning": capacity.zero_slot_containers,
        "defaultAuxPool": pool.pool_name == settings.pool_for("", 0),
        "defaultComputePool": pool.pool_name == settings.default_pool,
        "preemptible": False,
        "minAgents": provider.min_agents if provider else 0,
        "maxAgents": provider.max_agents if provider else 0,
        "maxIdleAgentPeriod": provider.idle_timeout if provider else 0,
        "maxAgentStartingPeriod": provider.start_timeout if provider else 0,
        "schedulerType": f"SCHEDULER_TYPE_{kind.upper()}",
        "schedulerFittingPolicy": f"FITTING_POLICY_{fitting.upper()}",
        "location": "on-prem",
        "resourceManagerMetadata": {},
        "account": pool_account.payer(pool),
        "details": details,
        "stats": {"queuedCount": capacity.queued, "scheduledCount": capacity.scheduled},
    }
