"""The effective configuration of an experiment, line by line with its origin; the check of a new one."""

import asyncio
from typing import Any

from fastapi import APIRouter

from determined.config import Checked, Diagnostic, check
from determined.config.masking import masked, masked_text
from determined_master.api.dependencies import Anyone, Read, ServicesDep, User
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries.config_provenance import effective
from determined_master.api.schemas import experiment_status as schemas
from determined_master.api.schemas.base import RowId
from determined_master.experiments import repository

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["detent"])

NO_ENTRYPOINT = Diagnostic(
    "error", "E202", "the configuration needs an entrypoint", "entrypoint", 1, 1, "entrypoint: python3 train.py"
)


@router.get("/experiments/{experiment_id}/config")
async def get_effective_config(
    experiment_id: RowId, _principal: Anyone, session: Read, services: ServicesDep
) -> schemas.EffectiveConfig:
    row = await repository.get(session, experiment_id)
    (defaults,) = services.creator.defaults()
    return await asyncio.to_thread(_shown, row.config, row.original_config, defaults)


def _shown(config: dict[str, Any], submitted: str, defaults: dict[str, Any]) -> schemas.EffectiveConfig:
    return effective(masked(config), masked_text(submitted), masked(defaults))


@router.post("/config/check")
async def check_config(body: schemas.ConfigCheckBody, _user: User, services: ServicesDep) -> schemas.ConfigCheck:
    """As at the creation of an experiment, which it does not make."""
    checked = await asyncio.to_thread(check, body.config, defaults=services.creator.defaults())
    found = [*checked.diagnostics, *([NO_ENTRYPOINT] if _has_no_entrypoint(checked) else [])]
    return schemas.ConfigCheck(
        ok=checked.ok and NO_ENTRYPOINT not in found,
        diagnostics=[schemas.ConfigDiagnostic.model_validate(each.to_json()) for each in found],
    )


def _has_no_entrypoint(checked: Checked) -> bool:
    return checked.config is not None and not checked.config.entrypoint
