"""Changes name, description, notes, labels, priority, checkpoint policy and limits of the search."""

from collections.abc import Collection
from typing import Any, Literal, TypedDict

from determined.config.checking import check_changes
from determined.errors import BadRequest, PreconditionFailed
from determined_master import notifications
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, WriteSession, notify
from determined_master.events import repository as events
from determined_master.experiments import repository
from determined_master.experiments.commands.search_limits import change_limits
from determined_master.jobs import repository as jobs
from determined_master.jobs.queue_order import check_priority
from determined_master.settings.settings import Settings
from determined_master.users.authorization import Authorization

SectionName = Literal["resources", "checkpoint_storage", "searcher"]


class ExperimentChanges(TypedDict, total=False):
    """Values to change; absent keys stay. None means absent, except for description, notes and ``max_slots``, which it
    clears."""

    name: str | None
    description: str | None
    notes: str | None
    labels: list[str] | None
    resources: dict[str, Any] | None
    """``priority``, ``weight``, ``max_slots``."""
    checkpoint_storage: dict[str, Any] | None
    """Numbers of checkpoints that are kept."""
    searcher: dict[str, Any] | None
    """``max_trials``, ``max_concurrent_trials`` of a running search."""


async def patch(
    database: Database,
    clock: Clock,
    authorization: Authorization,
    settings: Settings,
    experiment_id: int,
    changes: ExperimentChanges,
    principal: Principal,
) -> None:
    """Applies ``changes``. Raises BadRequest for a bad value, PreconditionFailed where sections of the configuration of
    an archived experiment are changed, and Forbidden where an owner makes an experiment more urgent than its pool's
    default."""
    async with database.write() as session:
        row = await repository.get(session, experiment_id)
        await authorization.check_change(session, principal, row.user_id, f"experiment {row.id}")
        if row.archived and any(changes.get(section) is not None for section in _SECTIONS):
            raise PreconditionFailed(f"experiment {row.id} is archived; unarchive it first")
        values = _texts(changes)
        config = dict(row.config) | {name: values[name] for name in _IN_CONFIG if name in values}
        job: dict[str, Any] = {}
        resources = changes.get("resources")
        if resources is not None:
            given = {key: value for key, value in resources.items() if value is not None or key == "max_slots"}
            config["resources"] = config["resources"] | given
            job = _job_values(resources)
            if "priority" in job:
                default = settings.priority_in(row.pool)
                old = (await jobs.get(session, row.job_id)).priority
                check_priority(
                    new=job["priority"], old=old, default=default, is_admin=authorization.may_improve(principal)
                )
            if job:
                await jobs.change(session, row.job_id, **job)
        storage = changes.get("checkpoint_storage")
        if storage is not None:
            kept = {key: value for key, value in storage.items() if value is not None}
            config["checkpoint_storage"] = config["checkpoint_storage"] | kept
            if row.state.is_ended:
                values["retention_due"] = True
                notify(session, notifications.RETENTION)
        limits = changes.get("searcher")
        if limits is not None:
            config["searcher"] = await change_limits(session, row, limits)
            await _record_limits(session, clock, principal, row, config["searcher"])
        _check_values(config, changes)
        if config != row.config:
            values |= {"config": config, "values_stale": True}
        if values:
            await repository.change(session, row, **values)
            changed = (values.keys() | job.keys()) - {"values_stale"}
            if not changes.keys() & set(_SECTIONS):
                changed.discard("config")  # a changed name is in it, and is named
            await _record(session, clock, principal, experiment_id, sorted(changed))
            notify(session, notifications.SCHEDULE, notifications.COLUMNS)


def _texts(changes: ExperimentChanges) -> dict[str, Any]:
    """Returns the changed columns of what people write about an experiment. Raises BadRequest for an empty name."""
    values: dict[str, Any] = {}
    name, labels = changes.get("name"), changes.get("labels")
    if name is not None:
        if not name.strip():
            raise BadRequest("a name must not be empty")
        values["name"] = name
    if "description" in changes:
        values["description"] = changes["description"] or ""
    if "notes" in changes:
        values["notes"] = changes["notes"] or ""
    if labels is not None:
        values["labels"] = sorted(set(labels))
    return values


_SECTIONS: tuple[SectionName, ...] = ("resources", "checkpoint_storage", "searcher")
_IN_CONFIG = ("name", "description", "labels")
"""Columns whose values are also in the configuration."""


def _check_values(config: dict[str, Any], changes: ExperimentChanges) -> None:
    """Raises BadRequest for a value that would be refused at submission."""
    sections = ("name", "labels", "resources", "checkpoint_storage")
    changed = {name: config[name] for name in sections if changes.get(name) is not None}
    for each in check_changes(changed):
        if each.severity == "error":
            raise BadRequest(f"{each.message}{f'; {each.hint}' if each.hint else ''}")


def _job_values(resources: dict[str, Any]) -> dict[str, Any]:
    """Returns the changed columns of the experiment's job. Raises BadRequest for a bad value."""
    priority, weight, max_slots = (resources.get(name) for name in ("priority", "weight", "max_slots"))
    if priority is not None:
        jobs.check_range(priority)
    given = {"priority": priority, "weight": weight}
    values = {name: value for name, value in given.items() if value is not None}
    return values | ({"max_slots": max_slots} if "max_slots" in resources else {})


async def relabel(
    database: Database,
    clock: Clock,
    authorization: Authorization,
    experiment_id: int,
    principal: Principal,
    *,
    add: Collection[str] = (),
    remove: Collection[str] = (),
) -> list[str]:
    """Returns the resulting labels."""
    async with database.write() as session:
        row = await repository.get(session, experiment_id)
        await authorization.check_change(session, principal, row.user_id, f"experiment {row.id}")
        labels = (set(row.labels) | set(add)) - set(remove)
        if labels != set(row.labels):
            config = row.config | {"labels": sorted(labels)}
            _check_values(config, {"labels": config["labels"]})
            await repository.change(session, row, labels=config["labels"], config=config, values_stale=True)
            await _record(session, clock, principal, experiment_id, ["labels"])
            notify(session, notifications.experiment(experiment_id))
    return sorted(labels)


async def _record_limits(
    session: WriteSession, clock: Clock, principal: Principal, row: ExperimentRow, searcher: dict[str, Any]
) -> None:
    before = row.config["searcher"]
    changed = {name: value for name, value in searcher.items() if before.get(name) != value}
    if changed:
        await events.record(
            session,
            clock,
            actor=principal.username,
            kind="search_changed",
            target_type="experiment",
            target_id=row.id,
            payload=changed,
        )


async def _record(
    session: WriteSession, clock: Clock, principal: Principal, experiment_id: int, fields: list[str]
) -> None:
    await events.record(
        session,
        clock,
        actor=principal.username,
        kind="changed",
        target_type="experiment",
        target_id=experiment_id,
        payload={"fields": fields},
    )
