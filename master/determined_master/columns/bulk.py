"""One verb to many experiments, which are named one by one."""

from fastapi import APIRouter

from determined.errors import NotImplementedYet
from determined_master.auth import User
from determined_master.columns import wire
from determined_master.dependencies import TheMaster

router = APIRouter(tags=["many experiments"])
_OF_PROJECT = "/api/v1/projects/{project_id}/experiments"


@router.post(f"{_OF_PROJECT}/activate")
async def activate_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post(f"{_OF_PROJECT}/pause")
async def pause_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post(f"{_OF_PROJECT}/cancel")
async def cancel_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post(f"{_OF_PROJECT}/kill")
async def kill_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post(f"{_OF_PROJECT}/archive")
async def archive_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post(f"{_OF_PROJECT}/unarchive")
async def unarchive_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.delete(f"{_OF_PROJECT}/delete")
async def delete_experiments(project_id: int, body: wire.BulkBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post(f"{_OF_PROJECT}/move")
async def move_experiments(project_id: int, body: wire.BulkMoveBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")


@router.post("/detent/experiments/labels")
async def label_experiments(body: wire.BulkLabelsBody, user: User, master: TheMaster) -> wire.BulkAnswer:
    raise NotImplementedYet("not yet")
