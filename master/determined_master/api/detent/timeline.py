"""Timeline of a trial: its attempts, and the marks on its curves."""

from fastapi import APIRouter

from determined_master.api.dependencies import Anyone, Read, User
from determined_master.api.queries.attempts import Attempts, attempts_of
from determined_master.api.queries.timeline_marks import TrialMarks, moments_of, on_curve
from determined_master.api.schemas.base import RowId
from determined_master.trials import repository
from determined_master.trials.timeline_queries import histories_of

router = APIRouter(prefix="/detent", tags=["detent"])


@router.get("/trials/{trial_id}/attempts")
async def attempts(trial_id: RowId, _user: User, session: Read) -> Attempts:
    return Attempts(attempts=await attempts_of(session, await repository.get(session, trial_id)))


@router.get("/trials/{trial_id}/marks")
async def get_trial_marks(trial_id: RowId, _principal: Anyone, session: Read) -> TrialMarks:
    (history,) = await histories_of(session, [await repository.get(session, trial_id)])
    return TrialMarks(marks=on_curve(moments_of(history)))
