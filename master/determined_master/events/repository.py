"""Writes and reads the list of what happened."""

from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncSession

from determined_master import hints
from determined_master.clock import Clock
from determined_master.db.models import EventRow
from determined_master.db.session import hint

SYSTEM = "system"


async def record(
    session: AsyncSession,
    clock: Clock,
    *,
    actor: str,
    kind: str,
    target_type: str,
    target_id: object,
    payload: dict[str, Any] | None = None,
) -> None:
    """In the same transaction as the change that it tells."""
    await session.execute(
        insert(EventRow).values(
            time=clock.now(),
            actor=actor,
            kind=kind,
            target_type=target_type,
            target_id=str(target_id),
            payload=payload or {},
        )
    )
    hint(session, hints.EVENTS)
