"""SQL that drops packed points of changed reports. Runs in the group-commit writer's thread."""

from sqlalchemy import Connection, delete, func, select, update

from determined_master.db.models import ChunkRow, MetricRow, SeriesCursorRow, SeriesRow
from determined_master.db.models.base import table_of

_M = table_of(MetricRow)
_S = table_of(SeriesRow)
_K = table_of(ChunkRow)
_C = table_of(SeriesCursorRow)


def unpack_from(connection: Connection, trial_id: int, metric_id: int) -> None:
    """Drops the packed points from a changed report on, so that they are packed anew. Called when a report is archived
    or extended, which reports of an undisturbed run never are."""
    query = select(_C.c.reached_id, _C.c.packed_id, _C.c.version).where(_C.c.trial_id == trial_id)
    cursor = connection.execute(query).one_or_none()
    if cursor is None or cursor.reached_id < metric_id:
        return
    series = select(_S.c.id).where(_S.c.trial_id == trial_id).scalar_subquery()
    touched = (_K.c.series_id.in_(series), _K.c.last_id >= metric_id)
    first = connection.execute(select(func.min(_K.c.first_id)).where(*touched)).scalar_one()
    first = metric_id if first is None else min(first, metric_id)
    connection.execute(delete(_K).where(*touched))
    left = (_K.c.series_id == _S.c.id, _K.c.factor == 1)
    points = select(func.coalesce(func.sum(_K.c.points), 0)).where(*left).scalar_subquery()
    packed = select(func.coalesce(func.max(_K.c.last_id), 0)).where(*left).scalar_subquery()
    connection.execute(update(_S).where(_S.c.trial_id == trial_id).values(points=points, packed_id=packed))
    run = connection.execute(select(_M.c.run_id).where(_M.c.id == first)).scalar_one_or_none()
    connection.execute(
        update(_C)
        .where(_C.c.trial_id == trial_id)
        .values(
            packed_id=min(cursor.packed_id, first - 1),
            packed_run=run or 0,
            reached_id=first - 1,
            version=cursor.version + 1,
            done_run=-1,
        )
    )
