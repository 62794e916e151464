"""SQL about reports of metrics, for reading."""

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from determined_master.db.models import MetricRow


async def by_ids(session: AsyncSession, ids: Collection[int]) -> dict[int, MetricRow]:
    if not ids:
        return {}
    rows = (await session.execute(select(MetricRow).where(MetricRow.id.in_(ids)))).scalars().all()
    return {row.id: row for row in rows}


async def shown(
    session: AsyncSession,
    trial_ids: Collection[int],
    groups: Collection[str] = (),
    *,
    after: int = 0,
    most: int | None = None,
) -> Sequence[MetricRow]:
    """Not archived, by trial, steps and id; ``after`` is the id to go on from when reading in pages by id."""
    query = select(MetricRow).where(MetricRow.trial_id.in_(trial_ids), MetricRow.archived.is_(False))
    if groups:
        query = query.where(MetricRow.group.in_(groups))
    if most is None:
        query = query.order_by(MetricRow.trial_id, MetricRow.steps, MetricRow.id)
    else:
        query = query.where(MetricRow.id > after).order_by(MetricRow.id).limit(most)
    return (await session.execute(query)).scalars().all()


async def at_step(session: AsyncSession, trial_id: int, steps: int) -> Sequence[MetricRow]:
    query = select(MetricRow).where(
        MetricRow.trial_id == trial_id, MetricRow.steps == steps, MetricRow.archived.is_(False)
    )
    return (await session.execute(query)).scalars().all()
