"""Committed facts that a searcher has to hear of."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from determined_master.db.models import SearchFactRow


async def add_event(
    session: AsyncSession, experiment_id: int, trial_id: int, kind: str, payload: dict[str, Any]
) -> None:
    """In the transaction of the change that it tells."""
    await session.execute(
        insert(SearchFactRow).values(experiment_id=experiment_id, trial_id=trial_id, kind=kind, payload=payload)
    )


async def facts_after(session: AsyncSession, experiment_id: int, cursor: int) -> Sequence[SearchFactRow]:
    query = (
        select(SearchFactRow)
        .where(SearchFactRow.experiment_id == experiment_id, SearchFactRow.id > cursor)
        .order_by(SearchFactRow.id)
    )
    return (await session.execute(query)).scalars().all()


async def experiments_with_news(session: AsyncSession) -> Sequence[int]:
    """Experiments that have a fact beyond their searcher's cursor."""
    query = select(SearchFactRow.experiment_id).distinct().where(SearchFactRow.heard.is_(False))
    return (await session.execute(query)).scalars().all()


async def mark_heard(session: AsyncSession, experiment_id: int, cursor: int) -> None:
    await session.execute(
        update(SearchFactRow)
        .where(SearchFactRow.experiment_id == experiment_id, SearchFactRow.id <= cursor)
        .values(heard=True)
    )


async def drop(session: AsyncSession, experiment_id: int) -> None:
    """Removes the facts of an experiment that is deleted: no searcher will hear of them."""
    await session.execute(delete(SearchFactRow).where(SearchFactRow.experiment_id == experiment_id))
