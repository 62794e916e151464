"""The state of the code from which an experiment was created."""

from fastapi import APIRouter

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas import experiments as schemas
from determined_master.api.schemas.base import RowId
from determined_master.experiments import code_repository, repository
from determined_master.experiments.code_state import StoredCode, text_of
from determined_master.offloading.threads import USER_FILES

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["detent"])


@router.get("/experiments/{experiment_id}/code")
async def get_code(
    experiment_id: RowId, _principal: Anyone, session: Read, diff: bool = True
) -> schemas.ExperimentCode:
    """Returns what the client knew of the code. ``diff`` false leaves its text out, which may have a mebibyte."""
    await repository.get(session, experiment_id)
    found = await code_repository.find(session, experiment_id)
    if found is None:
        return schemas.ExperimentCode()
    return schemas.ExperimentCode(code=await USER_FILES.run(_shown, found, diff))


def _shown(stored: StoredCode, with_diff: bool) -> schemas.ShownCode:
    state, text = stored.state, text_of(stored.diff)
    return schemas.ShownCode(
        commit=state.commit,
        branch=state.branch,
        remote=state.remote,
        is_dirty=bool(text) or state.is_cut,
        is_cut=state.is_cut,
        diff=text if with_diff else "",
        untracked=list(state.untracked),
    )
