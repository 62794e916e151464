"""The configuration that an experiment runs with, line by line with where it comes from; the check of a new one."""

from fastapi import APIRouter

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone, User
from determined_master.dependencies import Read, TheMaster
from determined_master.experiments import shown

router = APIRouter(prefix="/detent", tags=["detent"])


@router.get("/experiments/{experiment_id}/config")
async def get_effective_config(
    experiment_id: int, _principal: Anyone, session: Read, master: TheMaster
) -> shown.EffectiveConfig:
    raise NotImplementedYet


@router.post("/config/check")
async def check_config(body: shown.ConfigCheckBody, _user: User, master: TheMaster) -> shown.ConfigCheck:
    raise NotImplementedYet
