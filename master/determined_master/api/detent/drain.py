"""Before the whole cluster stops: nothing new starts, live trials are asked to save, and then to go."""

from typing import Any

from fastapi import APIRouter, Depends, Request

from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import Read, ServicesDep, current_admin, current_principal, current_user
from determined_master.api.schemas.base import Empty, Wire
from determined_master.authentication import bearer
from determined_master.trials import repository as trial_rows

router = APIRouter(prefix="/detent", tags=["cluster"])


async def operator(request: Request, services: ServicesDep) -> None:
    """An admin, or whoever holds the data folder: its supervisor must be able to end the cluster in good order even
    after every password was changed."""
    if not services.authenticator.is_agent(bearer(request.headers.get("authorization"))):
        await current_admin(await current_user(await current_principal(request)))


class DrainBody(Wire):
    kill: bool = False


@router.post("/drain", dependencies=[Depends(operator)])
async def drain(body: DrainBody, services: ServicesDep) -> Empty:
    """Experiments stay as they are; their trials go on at the next start. Lasts until this master ends."""
    services.draining = True
    async with services.database.write() as session:
        for row in await allocation_rows.live(session):
            if row.state.value == "PENDING":
                continue
            if body.kill:
                await services.allocations.kill(session, row)
            else:
                await services.allocations.terminate(session, row)
    return Empty()


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
