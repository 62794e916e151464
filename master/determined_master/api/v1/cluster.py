"""Routes about the master: info, version, configuration, log, health, resource pools."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from determined import __version__
from determined.config.masking import masked
from determined_master.agents import repository as agent_rows
from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import (
    Admin,
    Anyone,
    DatabaseDep,
    IdentityDep,
    LogReader,
    NoLogin,
    NotificationsDep,
    OwnLogDep,
    Read,
    SettingsDep,
    StorageHealthDep,
)
from determined_master.api.pagination import page
from determined_master.api.schemas.base import WIRE_VERSION, BoundedInt, Pagination, Wire, rfc3339
from determined_master.api.schemas.enums import log_level
from determined_master.cluster import repository
from determined_master.errors import StorageUnavailable
from determined_master.logging import OwnLog
from determined_master.notifications import Notifications

router = APIRouter(tags=["cluster"])


class MasterAnswer(Wire):
    version: str = WIRE_VERSION
    detent_version: str = ""
    master_id: str
    cluster_id: str
    cluster_name: str
    telemetry_enabled: bool = False
    sso_providers: list[Any] = []
    external_login_uri: str = ""
    external_logout_uri: str = ""
    branding: str = "determined"
    rbac_enabled: bool = False
    product: str = "PRODUCT_UNSPECIFIED"
    feature_switches: list[str] = []
    user_management_enabled: bool = True
    strict_job_queue_control: bool = False
    has_custom_logo: bool = False
    cluster_message: dict[str, Any] | None = None


class ConfigAnswer(Wire):
    config: dict[str, Any]


class PoolsAnswer(Wire):
    resource_pools: list[dict[str, Any]]
    pagination: Pagination


@router.get("/info", dependencies=[NoLogin])
async def info(identity: IdentityDep, settings: SettingsDep) -> dict[str, Any]:
    """Returns information about the master. Needs no sign-in. ``sso_providers`` is left out on purpose: its presence
    means another product to clients."""
    return {
        "version": WIRE_VERSION,
        "detent_version": __version__,
        "master_id": identity.master_id,
        "cluster_id": identity.cluster_id,
        "cluster_name": settings.cluster_name,
        "telemetry": {"enabled": False, "otel_enabled": False, "otel_endpoint": ""},
    }


@router.get("/health", dependencies=[NoLogin])
async def health(database: DatabaseDep, storage: StorageHealthDep, response: Response) -> dict[str, Any]:
    """Answers 503 while the master cannot write or has lost its database. Sizes and paths of storages are in
    ``/detent/storage``, for users."""
    has_database = True
    try:
        async with database.read() as session:
            await repository.ask(session)
    except StorageUnavailable:
        has_database = False
    is_up = has_database and storage.is_writable
    if not is_up:
        response.status_code = 503
    return {
        "status": "up" if is_up else "down",
        "database": "up" if has_database else "down",
        "resource_managers": [{"cluster_name": "", "status": "up"}],
        "storage": [{"name": each.name, "status": each.status} for each in storage.states],
    }


@router.get("/api/v1/master", dependencies=[NoLogin])
async def get_master(identity: IdentityDep, settings: SettingsDep) -> MasterAnswer:
    return MasterAnswer(
        master_id=identity.master_id,
        cluster_id=identity.cluster_id,
        cluster_name=settings.cluster_name,
        detent_version=__version__,
    )


@router.get("/api/v1/master/config")
async def get_config(_admin: Admin, settings: SettingsDep) -> ConfigAnswer:
    return ConfigAnswer(
        config={
            "host": settings.host,
            "port": settings.port,
            "cluster_name": settings.cluster_name,
            "checkpoint_storage": masked({"checkpoint_storage": settings.storage_default})["checkpoint_storage"],
            "resource_manager": {"type": "agent", "default_compute_resource_pool": settings.default_pool},
            "resource_pools": [{"pool_name": settings.default_pool}],
            "task_container_defaults": {"startup_hook": settings.startup_hook},
            "feature_switches": [],
            "launch_error": True,
            "agent_reconnect_wait": settings.agent_reconnect_wait,
            "context_limit": settings.context_limit,
            "db": {"type": "sqlite" if settings.url.startswith("sqlite") else "postgres"},
            "log": {"level": settings.log_level.lower(), "color": False},
        }
    )


@router.get("/api/v1/master/logs")
async def get_logs(
    _reader: LogReader,
    own_log: OwnLogDep,
    notifications: NotificationsDep,
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
    follow: bool = False,
) -> StreamingResponse:
    lines = _log_lines(own_log, notifications, offset, limit, follow)
    return StreamingResponse(lines, media_type="application/json")


@router.get("/api/v1/resource-pools")
async def get_pools(
    _principal: Anyone,
    settings: SettingsDep,
    session: Read,
    unbound: bool = False,
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> PoolsAnswer:
    """Lists resource pools. No pool is bound to a workspace, so ``unbound`` excludes none."""
    agents = await agent_rows.present(session)
    slots = await agent_rows.slots(session)
    held = await allocation_rows.held_slots(session)
    present = {a.id for a in agents}
    pool = _pool(
        settings.default_pool,
        agents=len(agents),
        slots=sum(s.agent_id in present for s in slots),
        used=len(held),
        slot_type=slots[0].type if slots else "cpu",
        zero_slots=len(await allocation_rows.agents_of_zero_slot_containers(session)),
        zero_slot_limit=settings.max_zero_slot_containers,
    )
    shown, pagination = page([pool], offset, limit)
    return PoolsAnswer(resource_pools=shown, pagination=pagination)


async def _log_lines(
    own_log: OwnLog, notifications: Notifications, offset: int, limit: int, follow: bool
) -> AsyncIterator[bytes]:
    last = offset - 1
    sent = 0
    while True:
        for number, at, level, message in list(own_log):
            if number <= last or (limit > 0 and sent >= limit):
                continue
            last = number
            sent += 1
            entry = {
                "id": number,
                "message": message,
                "timestamp": rfc3339(datetime.fromtimestamp(at, UTC)),
                "level": log_level(level),
            }
            yield json.dumps({"result": {"logEntry": entry}}).encode() + b"\n"
        if not follow or notifications.closing or (limit > 0 and sent >= limit):
            return
        await asyncio.sleep(0.5)


def _pool(
    name: str, *, agents: int, slots: int, used: int, slot_type: str, zero_slots: int, zero_slot_limit: int
) -> dict[str, Any]:
    nothing = dict.fromkeys(
        (
            "agentDockerImage",
            "agentDockerNetwork",
            "agentDockerRuntime",
            "agentFluentImage",
            "containerStartupScript",
            "imageId",
            "instanceType",
            "location",
            "masterCertName",
            "masterUrl",
            "startupScript",
            "accelerator",
        ),
        "",
    )
    return nothing | {
        "name": name,
        "description": "",
        "type": "RESOURCE_POOL_TYPE_STATIC",
        "numAgents": agents,
        "slotsAvailable": slots,
        "slotsUsed": used,
        "slotType": f"TYPE_{slot_type.upper()}",
        "slotsPerAgent": slots // agents if agents else 0,
        "auxContainerCapacity": zero_slot_limit * agents,
        "auxContainerCapacityPerAgent": zero_slot_limit,
        "auxContainersRunning": zero_slots,
        "clusterName": "",
        "defaultAuxPool": True,
        "defaultComputePool": True,
        "preemptible": False,
        "minAgents": 0,
        "maxAgents": 0,
        "maxIdleAgentPeriod": 0,
        "maxAgentStartingPeriod": 0,
        "schedulerType": "SCHEDULER_TYPE_PRIORITY",
        "schedulerFittingPolicy": "FITTING_POLICY_BEST",
        "resourceManagerMetadata": {},
        "details": {
            "aws": None,
            "gcp": None,
            "priorityScheduler": {"preemption": False, "defaultPriority": 42, "k8Priorities": []},
        },
        "stats": {"queuedCount": 0, "scheduledCount": 0},
    }
