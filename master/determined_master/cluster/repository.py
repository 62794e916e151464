"""SQL for the row of the cluster."""

import uuid

from sqlalchemy import select, text, update

from determined_master.db.models import ClusterRow
from determined_master.db.session import ReadSession, WriteSession


async def raise_epoch(session: WriteSession) -> ClusterRow:
    """Increments the epoch at every start of a master; agents obey the newest epoch."""
    row = (await session.execute(select(ClusterRow))).scalar_one_or_none()
    if row is None:
        row = ClusterRow(id=1, cluster_id=str(uuid.uuid4()), master_epoch=0)
        session.add(row)
        await session.flush()
    await session.execute(update(ClusterRow).values(master_epoch=ClusterRow.master_epoch + 1))
    await session.refresh(row)
    return row


async def ask(session: ReadSession) -> None:
    """Raises if the database does not answer."""
    await session.execute(text("SELECT 1"))
