"""The effective configuration of an experiment, line by line with its origin; the check of a new one."""

from typing import Any

from fastapi import APIRouter

from determined.config import Diagnostic
from determined.config.masking import masked, masked_text
from determined_master.api.dependencies import Anyone, CreatorDep, OffloaderDep, Read, User
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries.config_provenance import effective
from determined_master.api.schemas import experiment_status as schemas
from determined_master.api.schemas.base import RowId
from determined_master.experiments import repository
from determined_master.offloading.offloader import MAX_INLINE_CHARACTERS

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["detent"])

NO_ENTRYPOINT = Diagnostic(
    "error", "E202", "the configuration has no entrypoint", "entrypoint", 1, 1, "entrypoint: python3 train.py"
)


@router.get("/experiments/{experiment_id}/config")
async def get_effective_config(
    experiment_id: RowId, _principal: Anyone, session: Read, creator: CreatorDep, offloader: OffloaderDep
) -> schemas.EffectiveConfig:
    row = await repository.get(session, experiment_id)
    defaults = creator.defaults_in(row.pool)
    # Not on the event loop: it writes and parses the whole text.
    size = max(len(row.original_config), MAX_INLINE_CHARACTERS + 1)
    return await offloader.run_sized(size, _shown, row.config, row.original_config, defaults)


def _shown(config: dict[str, Any], submitted: str, defaults: dict[str, Any]) -> schemas.EffectiveConfig:
    return effective(masked(config), masked_text(submitted), masked(defaults))


@router.post("/config/check")
async def check_config(body: schemas.ConfigCheckBody, _user: User, creator: CreatorDep) -> schemas.ConfigCheck:
    """Checks a configuration as the creation of an experiment does, without creating one."""
    result = await creator.check_before_creation(body.config)
    has_entrypoint = result.config is None or bool(result.config.get("entrypoint"))
    found = [*result.checked.diagnostics, *([] if has_entrypoint else [NO_ENTRYPOINT])]
    return schemas.ConfigCheck(
        ok=result.config is not None and has_entrypoint,
        diagnostics=[schemas.ConfigDiagnostic.model_validate(each.to_json()) for each in found],
    )
