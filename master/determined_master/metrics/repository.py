"""SQL for reading reports of metrics."""

from collections.abc import Collection, Sequence

from sqlalchemy import select, tuple_

from determined_master.db.models import MetricRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.batches import batched

_PLACES_IN_A_QUERY = 1000


async def by_ids(session: ReadSession, ids: Collection[int]) -> dict[int, MetricRow]:
    if not ids:
        return {}
    rows = (await session.scalars(select(MetricRow).where(MetricRow.id.in_(ids)))).all()
    return {row.id: row for row in rows}


async def shown(
    session: ReadSession,
    trial_ids: Collection[int],
    groups: Collection[str] = (),
    *,
    after: int = 0,
    most: int | None = None,
) -> Sequence[MetricRow]:
    """Returns reports that are not archived, by trial, steps and id; ``after`` is the last id of the previous page."""
    query = select(MetricRow).where(MetricRow.trial_id.in_(trial_ids), MetricRow.archived.is_(False))
    if groups:
        query = query.where(MetricRow.group.in_(groups))
    if most is None:
        query = query.order_by(MetricRow.trial_id, MetricRow.steps, MetricRow.id)
    else:
        query = query.where(MetricRow.id > after).order_by(MetricRow.id).limit(most)
    return (await session.scalars(query)).all()


async def validations_at(session: ReadSession, places: Collection[tuple[int, int]]) -> dict[tuple[int, int], MetricRow]:
    """Returns reports by trial and step."""
    found = await at_steps(session, places, ["validation"])
    return {place: rows[0] for place, rows in found.items()}


async def at_steps(
    session: ReadSession, places: Collection[tuple[int, int]], groups: Collection[str] = ("training", "validation")
) -> dict[tuple[int, int], list[MetricRow]]:
    """Returns the reports that are not archived, by trial and step, newest first."""
    reports: dict[tuple[int, int], list[MetricRow]] = {}
    for some in batched(list(places), _PLACES_IN_A_QUERY):
        keys = [(trial_id, group, steps) for trial_id, steps in some for group in groups]
        where = tuple_(MetricRow.trial_id, MetricRow.group, MetricRow.steps).in_(keys)
        query = select(MetricRow).where(where, MetricRow.archived.is_(False)).order_by(MetricRow.id.desc())
        for row in await session.scalars(query):
            reports.setdefault((row.trial_id, row.steps or 0), []).append(row)
    return reports


async def best_places(session: ReadSession, experiment_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Returns, by experiment, the trial and the step of its best validation."""
    query = (
        select(TrialRow.experiment_id, TrialRow.id, MetricRow.steps, MetricRow.signed_metric)
        .join(MetricRow, MetricRow.id == TrialRow.best_validation_id)
        .where(TrialRow.experiment_id.in_(experiment_ids), MetricRow.signed_metric.is_not(None))
        .order_by(MetricRow.signed_metric.desc(), TrialRow.id.desc())
    )
    return {experiment: (trial, steps or 0) for experiment, trial, steps, _ in (await session.execute(query)).all()}
