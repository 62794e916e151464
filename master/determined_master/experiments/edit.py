"""Changes what people may change of an experiment: name, description, notes, labels, priority, what is kept of it."""

from collections.abc import Collection
from typing import Any

from determined.errors import BadRequest, PreconditionFailed
from determined_master import hints
from determined_master.clock import Clock
from determined_master.db.session import Database, hint
from determined_master.events import repository as events
from determined_master.experiments import repository, wire
from determined_master.principal import Principal


async def patch(
    database: Database, clock: Clock, experiment_id: int, body: wire.PatchExperimentBody, principal: Principal
) -> None:
    """Absent fields stay; a null is an absent one, but for description and notes, which it empties."""
    sent = body.model_fields_set
    async with database.write() as session:
        row = await repository.get(session, experiment_id)
        if row.archived:
            raise PreconditionFailed(f"experiment {row.id} is archived; unarchive it first")
        values: dict[str, Any] = {}
        if body.name is not None:
            if not body.name.strip():
                raise BadRequest("a name cannot be empty")
            values["name"] = body.name
        for field in ("description", "notes"):
            if field in sent:
                values[field] = getattr(body, field) or ""
        if body.labels is not None:
            values["labels"] = sorted(set(body.labels))
        config = dict(row.config)
        if body.resources is not None:
            resources = body.resources.model_dump(exclude_unset=True, by_alias=False)
            config["resources"] = config["resources"] | resources
            if body.resources.priority is not None:
                if not 1 <= body.resources.priority <= 99:
                    raise BadRequest("a priority is between 1 and 99")
                values["priority"] = body.resources.priority
        if body.checkpoint_storage is not None:
            kept = body.checkpoint_storage.model_dump(exclude_unset=True, exclude_none=True, by_alias=False)
            config["checkpoint_storage"] = config["checkpoint_storage"] | kept
        if config != row.config:
            values |= {"config": config, "values_stale": True}
        if values:
            await repository.change(session, row, **values)
            await _record(session, clock, principal, experiment_id, sorted(values.keys() - {"values_stale"}))
            hint(session, hints.SCHEDULE, hints.COLUMNS)


async def relabel(
    database: Database,
    clock: Clock,
    experiment_id: int,
    principal: Principal,
    *,
    add: Collection[str] = (),
    remove: Collection[str] = (),
) -> list[str]:
    """The labels that it then has."""
    async with database.write() as session:
        row = await repository.get(session, experiment_id)
        labels = (set(row.labels) | set(add)) - set(remove)
        if labels != set(row.labels):
            await repository.change(session, row, labels=sorted(labels))
            await _record(session, clock, principal, experiment_id, ["labels"])
            hint(session, hints.experiment(experiment_id))
    return sorted(labels)


async def _record(session: Any, clock: Clock, principal: Principal, experiment_id: int, fields: list[str]) -> None:
    await events.record(
        session,
        clock,
        actor=principal.username,
        kind="changed",
        target_type="experiment",
        target_id=experiment_id,
        payload={"fields": fields},
    )
