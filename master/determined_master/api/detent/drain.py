"""Drain before the cluster stops: nothing new starts, and live trials are preempted."""

import logging
from typing import Any

from fastapi import APIRouter, Depends

from determined.states import AllocationState
from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import DatabaseDep, DrainingDep, ManagersDep, Read, admin_or_operator
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas.base import Empty, Wire
from determined_master.db.session import Database
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.trials import repository as trial_rows

logger = logging.getLogger(__name__)
router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["cluster"])


class DrainBody(Wire):
    kill: bool = False


@router.post("/drain", dependencies=[Depends(admin_or_operator)])
async def drain(body: DrainBody, draining: DrainingDep, database: DatabaseDep, managers: ManagersDep) -> Empty:
    """Drains the cluster: experiments keep their states, and their trials resume at the next start. Lasts until this
    master ends."""
    draining.set()
    async with database.write() as session:  # after the placements that have begun; later ones are refused
        live = [
            row.id
            for row in await allocation_rows.live_without_spec(session)
            if row.state is not AllocationState.PENDING
        ]
    problems: list[Exception] = []
    for allocation_id in live:
        try:
            await _end(database, managers, allocation_id, kill=body.kill)
        except Exception as error:  # the others are preempted all the same, and the caller gets the error
            logger.exception("cannot ask allocation %s to stop", allocation_id)
            problems.append(error)
    if problems:
        raise problems[0]
    return Empty()


async def _end(database: Database, managers: ResourceManagers, allocation_id: str, *, kill: bool) -> None:
    async with database.write() as session:
        row = await allocation_rows.get(session, allocation_id)
        if row.state is AllocationState.PENDING:
            return
        end = managers.kill if kill else managers.preempt
        await end(session, row, why="the cluster is shutting down; this task resumes at the next start")


@router.get("/drain", dependencies=[Depends(admin_or_operator)])
async def still_live(session: Read) -> dict[str, Any]:
    """Returns the allocations that still hold slots."""
    names = []
    for row in await allocation_rows.live(session):
        if row.state is AllocationState.PENDING:
            continue
        trial = await trial_rows.find_by_task(session, row.task_id)
        names.append(f"trial {trial.id}" if trial else row.task_id)
    return {"live": names}
