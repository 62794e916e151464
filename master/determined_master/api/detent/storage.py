"""Free space of the master's storages, for the page's banner."""

from datetime import datetime
from typing import Literal

from fastapi import APIRouter

from determined_master.api.dependencies import StorageHealthDep, User
from determined_master.api.schemas.base import Wire

router = APIRouter(prefix="/detent", tags=["cluster"])


class Storage(Wire):
    name: str
    status: Literal["up", "low", "full", "failing"]
    free_bytes: int
    total_bytes: int
    path: str = ""
    """Path of the storage; empty for users who are not admins."""


class StorageAnswer(Wire):
    is_writable: bool
    failing_since: datetime | None
    storage: list[Storage]


@router.get("/storage")
async def get_storage(user: User, health: StorageHealthDep) -> StorageAnswer:
    """Returns whether the master can write, and the free space of its storages."""
    return StorageAnswer(
        is_writable=health.is_writable,
        failing_since=health.failing_since,
        storage=[
            Storage(
                name=each.name,
                status=each.status,
                free_bytes=each.free_bytes,
                total_bytes=each.total_bytes,
                path=str(each.path) if user.admin else "",
            )
            for each in health.states
        ],
    )
