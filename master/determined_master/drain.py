"""Before the whole cluster stops: nothing new starts, live trials are asked to save, and then to go."""

from typing import Any

from fastapi import APIRouter

from determined_master.allocations import repository as allocation_rows
from determined_master.auth import Admin
from determined_master.dependencies import Read, TheMaster
from determined_master.trials import repository as trial_rows
from determined_master.wire.model import Empty, Wire

router = APIRouter(prefix="/detent", tags=["cluster"])


class DrainBody(Wire):
    kill: bool = False


@router.post("/drain")
async def drain(body: DrainBody, _admin: Admin, master: TheMaster) -> Empty:
    """Experiments stay as they are; their trials go on at the next start. Lasts until this master ends."""
    master.draining = True
    async with master.database.write() as session:
        for row in await allocation_rows.live(session):
            if row.state.value == "PENDING":
                continue
            if body.kill:
                await master.allocations.kill(session, row)
            else:
                await master.allocations.terminate(session, row)
    return Empty()


@router.get("/drain")
async def still_live(_admin: Admin, session: Read) -> dict[str, Any]:
    """Who holds slots yet."""
    names = []
    for row in await allocation_rows.live(session):
        if row.state.value == "PENDING":
            continue
        trial = await trial_rows.find_by_task(session, row.task_id)
        names.append(f"trial {trial.id}" if trial else row.task_id)
    return {"live": names}
