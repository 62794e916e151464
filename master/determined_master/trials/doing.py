"""What a trial's curves are marked with."""

from fastapi import APIRouter

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.dependencies import Read
from determined_master.trials.marks import TrialMarks

router = APIRouter(prefix="/detent", tags=["detent"])


@router.get("/trials/{trial_id}/marks")
async def get_trial_marks(trial_id: int, _principal: Anyone, session: Read) -> TrialMarks:
    raise NotImplementedYet
