"""Before the whole cluster stops: nothing new starts, live trials are asked to save, and then to go."""

import logging
from typing import Any

from fastapi import APIRouter, Depends, Request

from determined.states import AllocationState
from determined_master.allocations import repository as allocation_rows
from determined_master.auth import bearer, current_admin, current_principal, current_user
from determined_master.dependencies import Read, TheMaster
from determined_master.master import Master
from determined_master.trials import repository as trial_rows
from determined_master.wire.model import Empty, Wire

logger = logging.getLogger(__name__)
router = APIRouter(prefix="/detent", tags=["cluster"])


async def operator(request: Request, master: TheMaster) -> None:
    """An admin, or whoever holds the data folder: its supervisor must be able to end the cluster in good order even
    after every password was changed."""
    if not master.authenticator.is_agent(bearer(request.headers.get("authorization"))):
        await current_admin(await current_user(await current_principal(request)))


class DrainBody(Wire):
    kill: bool = False


@router.post("/drain", dependencies=[Depends(operator)])
async def drain(body: DrainBody, master: TheMaster) -> Empty:
    """Experiments stay as they are; their trials go on at the next start. Lasts until this master ends."""
    master.draining = True
    async with master.database.read() as session:
        live = [row.id for row in await allocation_rows.live_without_spec(session) if row.state.value != "PENDING"]
    problems: list[Exception] = []
    for allocation_id in live:
        try:
            await _end(master, allocation_id, kill=body.kill)
        except Exception as error:  # the others are asked all the same, and the caller hears of it
            logger.exception("allocation %s could not be asked to end", allocation_id)
            problems.append(error)
    if problems:
        raise problems[0]
    return Empty()


async def _end(master: Master, allocation_id: str, *, kill: bool) -> None:
    async with master.database.write() as session:
        row = await allocation_rows.get(session, allocation_id)
        if row.state is AllocationState.PENDING:
            return
        await (master.allocations.kill(session, row) if kill else master.allocations.terminate(session, row))


@router.get("/drain", dependencies=[Depends(operator)])
async def still_live(session: Read) -> dict[str, Any]:
    """Who holds slots yet."""
    names = []
    for row in await allocation_rows.live(session):
        if row.state.value == "PENDING":
            continue
        trial = await trial_rows.find_by_task(session, row.task_id)
        names.append(f"trial {trial.id}" if trial else row.task_id)
    return {"live": names}
