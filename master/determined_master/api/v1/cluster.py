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
from determined_master.api.dependencies import (
    Admin,
    DatabaseDep,
    IdentityDep,
    LogReader,
    NoLogin,
    NotificationsDep,
    OwnLogDep,
    SettingsDep,
    StorageHealthDep,
)
from determined_master.api.schemas.base import WIRE_VERSION, BoundedInt, Wire, rfc3339
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
    """Answers 503 while the master cannot write, and where its database is away or damaged. Sizes and paths of
    storages are in ``/detent/storage``, for users."""
    has_database = True
    try:
        async with database.read() as session:
            await repository.ask(session)
    except StorageUnavailable:
        has_database = False
    is_up = has_database and storage.is_writable and not storage.is_damaged
    if not is_up:
        response.status_code = 503
    advice = {"advice": StorageUnavailable.DAMAGED} if storage.is_damaged else {}
    return {
        **advice,
        "status": "up" if is_up else "down",
        "database": "damaged" if storage.is_damaged else "up" if has_database else "down",
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
            "resource_manager": {
                "type": "agent",
                "default_compute_resource_pool": settings.default_pool,
                "default_aux_resource_pool": settings.pool_for("", 0),
            },
            "resource_pools": [
                each.model_dump(mode="json", exclude_none=True)
                | {"task_container_defaults": each.task_container_defaults.masked()}
                for each in settings.pools.values()
            ],
            "task_container_defaults": {
                **settings.task_container_defaults.masked(),
                "startup_hook": settings.hook_in(""),
            },
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
